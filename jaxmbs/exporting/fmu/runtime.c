/* The functions of FMI 3.0. What comes before this text in the file defines the model: variables, loop_begin, loop_again,
 * loop_iterate, rates_of, slopes_of, which return 0, or 1 if there is no memory left. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define FMI __attribute__((visibility("default")))

enum { OK = 0, WARNING = 1, DISCARD = 2, ERROR = 3, FATAL = 4 };
enum { TIME = 0, INPUT = 1, STATE = 2, RATE = 3 };
typedef void *Instance;
typedef const char *Name;
typedef uint32_t Reference;
typedef void (*Logger)(void *environment, int status, const char *category, const char *message);

typedef struct {
    char token[sizeof token]; /* that of the FMU to which the numbers belong */
    double t, u[INPUTS + 1], x[STATES], dx[STATES];
    bool initialized, stale; /* whether initialization is over; whether dx is older than t, u and x */
    int now;                 /* which of the two states of the loop is valid */
    Loop loop[2];
} Numbers;

typedef struct {
    Numbers n;
    Logger log;
    void *environment;
} Unit;

static int said(Unit *unit, int status, const char *message)
{
    if (unit && unit->log) unit->log(unit->environment, status, "logStatusError", message);
    return status;
}

static void reset(Numbers *n)
{
    memset(n, 0, sizeof *n);
    memcpy(n->token, token, sizeof token);
    memcpy(n->u, start_u, sizeof(double) * INPUTS);
    memcpy(n->x, start_x, sizeof(double) * STATES);
    n->stale = true;
}

static Instance made(const char *given, void *environment, Logger log)
{
    if (!given || strcmp(given, token) != 0) {
        if (log) log(environment, ERROR, "logStatusError", "the instantiation token is that of another FMU");
        return NULL;
    }
    Unit *unit = malloc(sizeof *unit);
    if (!unit) return NULL;
    unit->log = log;
    unit->environment = environment;
    reset(&unit->n);
    return unit;
}

static int without_memory(Unit *unit) { return said(unit, ERROR, "there is no memory left"); }

static int refresh(Unit *unit)
{
    Numbers *n = &unit->n;
#if EXCHANGE
    if (n->stale && rates_of(n->t, n->x, n->u, n->dx)) return without_memory(unit);
#endif
    n->stale = false;
    return OK;
}

FMI const char *fmi3GetVersion(void) { return "3.0"; }

FMI int fmi3SetDebugLogging(Instance i, bool on, size_t k, const char *const *categories)
{
    (void)i; (void)on; (void)k; (void)categories;
    return OK;
}

FMI Instance fmi3InstantiateModelExchange(const char *name, const char *given, const char *path, bool visible, bool logging,
                                          void *environment, Logger log)
{
    (void)name; (void)path; (void)visible; (void)logging;
    return EXCHANGE ? made(given, environment, log) : NULL;
}

FMI Instance fmi3InstantiateCoSimulation(const char *name, const char *given, const char *path, bool visible, bool logging,
                                         bool events, bool early, const Reference *required, size_t k, void *environment,
                                         Logger log, void *update)
{
    (void)name; (void)path; (void)visible; (void)logging; (void)events; (void)early; (void)required; (void)k; (void)update;
    return made(given, environment, log);
}

FMI Instance fmi3InstantiateScheduledExecution(const char *name, const char *given, const char *path, bool visible,
                                               bool logging, void *environment, Logger log, void *a, void *b, void *c)
{
    (void)name; (void)given; (void)path; (void)visible; (void)logging; (void)environment; (void)log; (void)a; (void)b; (void)c;
    return NULL;
}

FMI void fmi3FreeInstance(Instance i) { free(i); }

FMI int fmi3EnterInitializationMode(Instance i, bool tolerant, double tolerance, double start, bool ends, double stop)
{
    Unit *unit = i;
    (void)tolerant; (void)tolerance; (void)ends; (void)stop;
    unit->n.t = start;
    unit->n.stale = true;
    return OK;
}

FMI int fmi3ExitInitializationMode(Instance i)
{
    Unit *unit = i;
    double from[STATES];
    memcpy(from, unit->n.x, sizeof from);
    if (loop_begin(unit->n.t, from, unit->n.u, &unit->n.loop[unit->n.now], unit->n.x)) return without_memory(unit);
    unit->n.initialized = true;
    return OK;
}

FMI int fmi3EnterEventMode(Instance i) { (void)i; return OK; }
FMI int fmi3EnterContinuousTimeMode(Instance i) { (void)i; return OK; }
FMI int fmi3EnterStepMode(Instance i) { (void)i; return OK; }
FMI int fmi3EnterConfigurationMode(Instance i) { (void)i; return OK; }
FMI int fmi3ExitConfigurationMode(Instance i) { (void)i; return OK; }
FMI int fmi3Terminate(Instance i) { (void)i; return OK; }
FMI int fmi3Reset(Instance i) { reset(&((Unit *)i)->n); return OK; }

FMI int fmi3GetFloat64(Instance i, const Reference *which, size_t k, double *values, size_t room)
{
    Unit *unit = i;
    Numbers *n = &unit->n;
    for (size_t j = 0; j < k; j++) {
        if (which[j] >= VARIABLES) return said(unit, ERROR, "there is no variable with this value reference");
        const int kind = variables[which[j]].kind, offset = variables[which[j]].offset, size = variables[which[j]].size;
        if ((size_t)size > room) return said(unit, ERROR, "there are too few places for the values");
        if (kind == RATE && refresh(unit)) return ERROR;
        const double *from = kind == TIME ? &n->t : kind == INPUT ? n->u : kind == STATE ? n->x : n->dx;
        memcpy(values, from + offset, sizeof(double) * (size_t)size);
        values += size;
        room -= (size_t)size;
    }
    return OK;
}

FMI int fmi3SetFloat64(Instance i, const Reference *which, size_t k, const double *values, size_t given)
{
    Unit *unit = i;
    Numbers *n = &unit->n;
    for (size_t j = 0; j < k; j++) {
        if (which[j] >= VARIABLES) return said(unit, ERROR, "there is no variable with this value reference");
        const int kind = variables[which[j]].kind, offset = variables[which[j]].offset, size = variables[which[j]].size;
        if ((size_t)size > given) return said(unit, ERROR, "there are too few values");
        if (kind != INPUT && !(kind == STATE && !n->initialized))
            return said(unit, ERROR, "this variable is calculated: only inputs and parameters can be set, and coordinates and "
                                     "rates until initialization is over");
        memcpy((kind == INPUT ? n->u : n->x) + offset, values, sizeof(double) * (size_t)size);
        values += size;
        given -= (size_t)size;
    }
    n->stale = true;
    return OK;
}

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

/* What this FMU does not have: its description says so, and no importer calls these. */
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

FMI int fmi3EvaluateDiscreteStates(Instance i) { (void)i; return OK; }

FMI int fmi3UpdateDiscreteStates(Instance i, bool *more, bool *ends, bool *nominals, bool *states, bool *defined, double *next)
{
    (void)i;
    *more = *ends = *nominals = *states = *defined = false;
    *next = 0;
    return OK;
}

FMI int fmi3GetFMUState(Instance i, void **state)
{
    Numbers *to = *state ? *state : malloc(sizeof *to);
    if (!to) return without_memory(i);
    *to = ((Unit *)i)->n;
    *state = to;
    return OK;
}

FMI int fmi3SetFMUState(Instance i, void *state) { ((Unit *)i)->n = *(Numbers *)state; return OK; }
FMI int fmi3FreeFMUState(Instance i, void **state) { (void)i; free(*state); *state = NULL; return OK; }
FMI int fmi3SerializedFMUStateSize(Instance i, void *s, size_t *k) { (void)i; (void)s; *k = sizeof(Numbers); return OK; }

FMI int fmi3SerializeFMUState(Instance i, void *state, uint8_t *bytes, size_t room)
{
    if (room < sizeof(Numbers)) return said(i, ERROR, "there are too few places for the state");
    memcpy(bytes, state, sizeof(Numbers));
    return OK;
}

FMI int fmi3DeserializeFMUState(Instance i, const uint8_t *bytes, size_t k, void **state)
{
    if (k != sizeof(Numbers) || memcmp(bytes, token, sizeof token) != 0)
        return said(i, ERROR, "this is the state of another FMU");
    if (!*state) *state = malloc(sizeof(Numbers));
    if (!*state) return without_memory(i);
    memcpy(*state, bytes, k);
    return OK;
}

FMI int fmi3GetDirectionalDerivative(Instance i, const Reference *unknowns, size_t nu, const Reference *knowns, size_t nk,
                                     const double *seed, size_t ns, double *out, size_t no)
{
#if EXCHANGE
    Unit *unit = i;
    double dt = 0, dx[STATES] = {0}, du[INPUTS + 1] = {0}, slopes[STATES];
    for (size_t j = 0; j < nk; j++) {
        if (knowns[j] >= VARIABLES || variables[knowns[j]].kind == RATE)
            return said(unit, ERROR, "derivatives exist with respect to time, inputs, parameters, coordinates and rates");
        const int kind = variables[knowns[j]].kind, offset = variables[knowns[j]].offset, size = variables[knowns[j]].size;
        if ((size_t)size > ns) return said(unit, ERROR, "there are too few seeds");
        memcpy((kind == TIME ? &dt : kind == STATE ? dx : du) + offset, seed, sizeof(double) * (size_t)size);
        seed += size;
        ns -= (size_t)size;
    }
    if (slopes_of(unit->n.t, unit->n.x, unit->n.u, dt, dx, du, slopes)) return without_memory(unit);
    for (size_t j = 0; j < nu; j++) {
        if (unknowns[j] >= VARIABLES || (variables[unknowns[j]].kind != STATE && variables[unknowns[j]].kind != RATE))
            return said(unit, ERROR, "derivatives exist of coordinates, rates and their derivatives");
        const int kind = variables[unknowns[j]].kind, offset = variables[unknowns[j]].offset, size = variables[unknowns[j]].size;
        if ((size_t)size > no) return said(unit, ERROR, "there are too few places for the derivatives");
        memcpy(out, (kind == STATE ? dx : slopes) + offset, sizeof(double) * (size_t)size);
        out += size;
        no -= (size_t)size;
    }
    return OK;
#else
    (void)unknowns; (void)nu; (void)knowns; (void)nk; (void)seed; (void)ns; (void)out; (void)no;
    return said(i, ERROR, "an FMU for co-simulation alone has no directional derivatives");
#endif
}

FMI int fmi3CompletedIntegratorStep(Instance i, bool unchanged, bool *event, bool *ends)
{
    (void)i; (void)unchanged;
    *event = *ends = false;
    return OK;
}

FMI int fmi3SetTime(Instance i, double t)
{
    ((Unit *)i)->n.t = t;
    ((Unit *)i)->n.stale = true;
    return OK;
}

FMI int fmi3SetContinuousStates(Instance i, const double *x, size_t k)
{
    if (k != STATES) return said(i, ERROR, "the number of states is wrong");
    memcpy(((Unit *)i)->n.x, x, sizeof(double) * k);
    ((Unit *)i)->n.stale = true;
    return OK;
}

FMI int fmi3GetContinuousStates(Instance i, double *x, size_t k)
{
    if (k != STATES) return said(i, ERROR, "the number of states is wrong");
    memcpy(x, ((Unit *)i)->n.x, sizeof(double) * k);
    return OK;
}

FMI int fmi3GetContinuousStateDerivatives(Instance i, double *dx, size_t k)
{
    if (k != STATES) return said(i, ERROR, "the number of states is wrong");
    if (refresh(i)) return ERROR;
    memcpy(dx, ((Unit *)i)->n.dx, sizeof(double) * k);
    return OK;
}

FMI int fmi3GetNominalsOfContinuousStates(Instance i, double *x, size_t k)
{
    (void)i;
    for (size_t j = 0; j < k; j++) x[j] = 1;
    return OK;
}

FMI int fmi3GetEventIndicators(Instance i, double *values, size_t k) { (void)i; (void)values; (void)k; return OK; }
FMI int fmi3GetNumberOfEventIndicators(Instance i, size_t *k) { (void)i; *k = 0; return OK; }
FMI int fmi3GetNumberOfContinuousStates(Instance i, size_t *k) { (void)i; *k = STATES; return OK; }

FMI int fmi3DoStep(Instance i, double t, double size, bool final, bool *event, bool *ends, bool *early, double *reached)
{
    Unit *unit = i;
    Numbers *n = &unit->n;
    (void)final;
    *event = *ends = *early = false;
    *reached = t;
    if (!(size > 0)) return said(unit, ERROR, "the length of a communication step must be more than zero");
    const double steps = fmax(1, ceil(size / longest_step - 1e-9));
    if (steps > 1e6) return said(unit, ERROR, "the communication step is longer than a million steps of the FMU");
    const int32_t cells = (int32_t)steps;
    int32_t cell = 0;
    int32_t wrong = 0;
    uint8_t ended = 0;
    double end = t + size;
    static const char *const reasons[] = {
        "", "the state is no longer finite: shorten the steps, or check the inputs",
        "the motion would pass a stop on which it rests", "a controller gave a value that a parameter cannot have",
        "constraints were violated when an event switched them on",
    };
    if (loop_again(&n->loop[n->now], &n->loop[!n->now])) return without_memory(unit);
    n->now = !n->now;
    n->stale = true;
    for (int64_t turn = 0; cell < cells && !ended; turn++) {
        if (turn > 10 * (int64_t)cells + 10000)
            return said(unit, ERROR, "more events happen in this communication step than the FMU has room for");
        if (loop_iterate(t, size / steps, n->u, &n->loop[n->now], &n->loop[!n->now], n->x, &cell, &ended, &end, &wrong))
            return without_memory(unit);
        n->now = !n->now;
        if (wrong) return said(unit, ERROR, reasons[wrong]);
    }
    n->t = *reached = ended ? end : t + size;
    *ends = ended;
    return OK;
}
