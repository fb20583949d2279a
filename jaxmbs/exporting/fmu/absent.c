/* The functions of FMI 3.0 for what an FMU does not have: its description says so, and importers have no use for them. */
#define NONE(type, name)                                                                                                    \
    FMI int fmi3Get##name(Instance i, const Reference *which, size_t k, type *values, size_t room)                          \
    {                                                                                                                       \
        (void)which; (void)values; (void)room;                                                                              \
        return k ? said(i, ERROR, "all variables are of type Float64") : OK;                                                \
    }                                                                                                                       \
    FMI int fmi3Set##name(Instance i, const Reference *which, size_t k, const type *values, size_t room)                    \
    {                                                                                                                       \
        (void)which; (void)values; (void)room;                                                                              \
        return k ? said(i, ERROR, "all variables are of type Float64") : OK;                                                \
    }
NONE(float, Float32)
NONE(int8_t, Int8)
NONE(uint8_t, UInt8)
NONE(int16_t, Int16)
NONE(uint16_t, UInt16)
NONE(int32_t, Int32)
NONE(uint32_t, UInt32)
NONE(int64_t, Int64)
NONE(uint64_t, UInt64)
NONE(bool, Boolean)
NONE(Name, String)

#define ABSENT(name, ...)                                                                                                   \
    FMI int fmi3##name(Instance i, __VA_ARGS__);                                                                            \
    FMI int fmi3##name(Instance i, __VA_ARGS__) { return said(i, ERROR, "fmi3" #name " is not supported"); }
#pragma GCC diagnostic ignored "-Wunused-parameter"
ABSENT(GetBinary, const Reference *which, size_t k, size_t *sizes, const uint8_t **values, size_t room)
ABSENT(SetBinary, const Reference *which, size_t k, const size_t *sizes, const uint8_t *const *values, size_t room)
ABSENT(GetClock, const Reference *which, size_t k, bool *values)
ABSENT(SetClock, const Reference *which, size_t k, const bool *values)
ABSENT(GetNumberOfVariableDependencies, Reference which, size_t *k)
ABSENT(GetVariableDependencies, Reference which, size_t *a, Reference *b, size_t *c, int *kinds, size_t k)
ABSENT(GetAdjointDerivative, const Reference *a, size_t k, const Reference *b, size_t m, const double *c, size_t p, double *d,
       size_t q)
ABSENT(GetIntervalDecimal, const Reference *which, size_t k, double *values, int *kinds)
ABSENT(GetIntervalFraction, const Reference *which, size_t k, uint64_t *a, uint64_t *b, int *kinds)
ABSENT(GetShiftDecimal, const Reference *which, size_t k, double *values)
ABSENT(GetShiftFraction, const Reference *which, size_t k, uint64_t *a, uint64_t *b)
ABSENT(SetIntervalDecimal, const Reference *which, size_t k, const double *values)
ABSENT(SetIntervalFraction, const Reference *which, size_t k, const uint64_t *a, const uint64_t *b)
ABSENT(SetShiftDecimal, const Reference *which, size_t k, const double *values)
ABSENT(SetShiftFraction, const Reference *which, size_t k, const uint64_t *a, const uint64_t *b)
ABSENT(GetOutputDerivatives, const Reference *which, size_t k, const int32_t *orders, double *values, size_t room)
ABSENT(ActivateModelPartition, Reference clock, double t)
