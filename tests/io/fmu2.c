/* An FMU of FMI 2.0, for the tests: a lag x' = (gain * u - x) / lag by the explicit Euler method with steps of 10 ms, a count
 * of its steps, and whether x is above 1. A step from an x above `limit` is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double u, x, gain, lag, limit;
    int count, stop;
} Lag;

void *fmi2Instantiate(const char *name, int kind, const char *guid, const char *place, const void *calls, int a, int b)
{
    (void)name; (void)kind; (void)place; (void)calls; (void)a; (void)b;
    if (strcmp(guid, "lag")) return NULL;
    Lag *l = malloc(sizeof *l);
    if (l) *l = (Lag){0, 0.25, 1, 0.5, 1e9, 0, 0};
    return l;
}
void fmi2FreeInstance(void *l) { free(l); }
int fmi2SetupExperiment(void *l, int a, double b, double c, int d, double e) { (void)l; (void)a; (void)b; (void)c; (void)d; (void)e; return 0; }
int fmi2EnterInitializationMode(void *l) { (void)l; return 0; }
int fmi2ExitInitializationMode(void *l) { (void)l; return 0; }
int fmi2Terminate(void *l) { (void)l; return 0; }

static double *number(Lag *l, unsigned k) { return k == 0 ? &l->u : k == 1 ? &l->x : k == 2 ? &l->gain : k == 3 ? &l->lag : &l->limit; }

int fmi2GetReal(void *l, const unsigned *k, size_t n, double *x) { for (size_t i = 0; i < n; i++) x[i] = *number(l, k[i]); return 0; }
int fmi2SetReal(void *l, const unsigned *k, size_t n, const double *x) { for (size_t i = 0; i < n; i++) *number(l, k[i]) = x[i]; return 0; }
int fmi2GetInteger(void *l, const unsigned *k, size_t n, int *x) { (void)k; if (n) *x = ((Lag *)l)->count; return 0; }
int fmi2GetBoolean(void *l, const unsigned *k, size_t n, int *x) { (void)k; if (n) *x = ((Lag *)l)->x > 1; return 0; }
int fmi2SetBoolean(void *l, const unsigned *k, size_t n, const int *x) { (void)k; if (n) ((Lag *)l)->stop = *x; return 0; }

int fmi2DoStep(void *it, double t, double h, int final)
{
    Lag *l = it;
    (void)t; (void)final;
    if (l->x > l->limit) return 3;
    if (l->stop) return 0;
    const int steps = (int)round(h / 0.01);
    for (int i = 0; i < steps; i++) l->x += 0.01 * (l->gain * l->u - l->x) / l->lag;
    l->count += steps;
    return 0;
}

int fmi2GetFMUstate(void *l, void **s)
{
    if (!*s) *s = malloc(sizeof(Lag));
    if (!*s) return 3;
    memcpy(*s, l, sizeof(Lag));
    return 0;
}
int fmi2SetFMUstate(void *l, void *s) { memcpy(l, s, sizeof(Lag)); return 0; }
int fmi2FreeFMUstate(void *l, void **s) { (void)l; free(*s); *s = NULL; return 0; }
int fmi2SerializedFMUstateSize(void *l, void *s, size_t *n) { (void)l; (void)s; *n = sizeof(Lag); return 0; }
int fmi2SerializeFMUstate(void *l, void *s, char *to, size_t n) { (void)l; memcpy(to, s, n); return 0; }
int fmi2DeSerializeFMUstate(void *l, const char *from, size_t n, void **s)
{
    (void)l;
    if (!*s) *s = malloc(n);
    if (!*s) return 3;
    memcpy(*s, from, n);
    return 0;
}

/* Functions that FMPy wants to see, and never calls here. */
#define UNUSED(name) int fmi2##name(void) { return 3; }
UNUSED(SetDebugLogging)
UNUSED(Reset)
UNUSED(GetString)
UNUSED(SetString)
UNUSED(SetInteger)
UNUSED(GetDirectionalDerivative)
UNUSED(SetRealInputDerivatives)
UNUSED(GetRealOutputDerivatives)
UNUSED(CancelStep)
UNUSED(GetStatus)
UNUSED(GetRealStatus)
UNUSED(GetIntegerStatus)
UNUSED(GetBooleanStatus)
UNUSED(GetStringStatus)
UNUSED(GetTypesPlatform)
UNUSED(GetVersion)
