/* The functions of FMI 3.0. What comes before this text in the file defines the model: variables, loop_begin, loop_again,
 * loop_iterate, loop_place, rates_of, indicators_of, instant_of, slopes_of, which return 0, or 1 if there is no memory left. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define FMI __attribute__((visibility("default")))

enum { OK = 0, WARNING = 1, DISCARD = 2, ERROR = 3, FATAL = 4 };
enum { TIME = 0, INPUT = 1, STATE = 2, RATE = 3, INDICATOR = 4 };
typedef void *Instance;
typedef const char *Name;
typedef uint32_t Reference;
typedef void (*Logger)(void *environment, int status, const char *category, const char *message);

typedef struct {
    char token[sizeof token]; /* that of the FMU to which the numbers belong */
    double t, u[INPUTS + 1], x[STATES], dx[STATES], z[INDICATORS + 1];
    double next;                   /* the next known instant, infinite if there is none */
    bool initialized, stale, past; /* whether initialization is over; whether dx, z are older than t, u, x and the mode */
    int now;                       /* which of the two states of the loop is valid */
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

static void moved(Numbers *n) { n->stale = n->past = true; }

static void reset(Numbers *n)
{
    memset(n, 0, sizeof *n);
    memcpy(n->token, token, sizeof token);
    memcpy(n->u, start_u, sizeof(double) * INPUTS);
    memcpy(n->x, start_x, sizeof(double) * STATES);
    n->next = INFINITY;
    moved(n);
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

/* The states; before initialization is over, what they would be after it, for which there is room. NULL: without memory. */
static const double *states(Unit *unit, double *room)
{
    Numbers *n = &unit->n;
    if (n->initialized) return n->x;
    return loop_begin(n->t, n->x, n->u, &n->loop[n->now], room) ? NULL : room;
}

static int refresh(Unit *unit)
{
    Numbers *n = &unit->n;
    if (!n->stale) return OK;
    double room[STATES];
    const double *x = states(unit, room);
    if (!x || rates_of(n->t, x, n->u, &n->loop[n->now], n->dx)) return without_memory(unit);
    n->stale = false;
    return OK;
}

static int indicate(Unit *unit)
{
    Numbers *n = &unit->n;
    if (!n->past) return OK;
    double room[STATES];
    const double *x = states(unit, room);
    if (!x || indicators_of(n->t, x, n->u, &n->loop[n->now], n->z)) return without_memory(unit);
    n->past = false;
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
    return made(given, environment, log);
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
    moved(&unit->n);
    return OK;
}

FMI int fmi3ExitInitializationMode(Instance i)
{
    Unit *unit = i;
    double x[STATES];
    if (!states(unit, x)) return without_memory(unit);
    memcpy(unit->n.x, x, sizeof x);
    unit->n.initialized = true;
    moved(&unit->n);
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
        if ((kind == RATE && refresh(unit)) || (kind == INDICATOR && indicate(unit))) return ERROR;
        const double *of[] = {&n->t, n->u, n->x, n->dx, n->z}, *from = of[kind];
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
    moved(n);
    return OK;
}

FMI int fmi3EvaluateDiscreteStates(Instance i) { (void)i; return OK; }

static const char *const reasons[] = {
    "", "the state is no longer finite: shorten the steps, or check the inputs",
    "the motion would pass a stop on which it rests", "a controller gave a value that a parameter cannot have",
    "constraints were violated when an event switched them on",
};

/* Iterations of the loop from time t on: `cells` steps of length h, or the events at t if h is 0. */
static int iterated(Unit *unit, double t, double h, int32_t cells, uint8_t *ended, double *end)
{
    Numbers *n = &unit->n;
    int32_t cell = 0, wrong = 0;
    moved(n);
    for (int64_t turn = 0; cell < cells && !*ended; turn++) {
        if (turn > 10 * (int64_t)cells + 10000)
            return said(unit, ERROR, h > 0 ? "more events happen in this communication step than the FMU has room for"
                                           : "more events happen at this instant than the FMU has room for");
        if (loop_iterate(t, h, n->u, &n->loop[n->now], &n->loop[!n->now], n->x, &cell, ended, end, &wrong))
            return without_memory(unit);
        n->now = !n->now;
        if (wrong) return said(unit, ERROR, reasons[wrong]);
    }
    return OK;
}

FMI int fmi3UpdateDiscreteStates(Instance i, bool *more, bool *ends, bool *nominals, bool *jumps, bool *defined, double *next)
{
    Unit *unit = i;
    Numbers *n = &unit->n;
    double before[STATES], end = 0, t = n->t;
    uint8_t ended = 0;
    /* what rounding alone separates from this instant happens now */
    const double near = fmax(1e-9 * longest_step, 8 * DBL_EPSILON * fabs(t));
    memcpy(before, n->x, sizeof before);
    if (fabs(n->next - t) <= near) t = n->next;
    for (int turn = 0;; turn++) {
        if (turn > 1000) return said(unit, ERROR, "more events happen at this instant than the FMU has room for");
        if (loop_place(t, n->x, n->u, &n->loop[n->now], &n->loop[!n->now])) return without_memory(unit);
        n->now = !n->now;
        if (iterated(unit, t, 0, 1, &ended, &end)) return ERROR;
        if (instant_of(t, n->x, n->u, &n->loop[n->now], &n->next)) return without_memory(unit);
        if (ended || !(n->next - n->t <= near)) break;
        t = fmax(t, n->next);
    }
    *more = *nominals = false;
    *ends = ended;
    *jumps = memcmp(before, n->x, sizeof before) != 0;
    *defined = isfinite(n->next);
    *next = *defined ? n->next : 0;
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
    Unit *unit = i;
    Numbers *n = &unit->n;
    double room[STATES], dt = 0, dx[STATES] = {0}, du[INPUTS + 1] = {0}, slopes[STATES + INDICATORS + 1];
    for (size_t j = 0; j < nk; j++) {
        if (knowns[j] >= VARIABLES || variables[knowns[j]].kind >= RATE)
            return said(unit, ERROR, "derivatives exist with respect to time, inputs, parameters, coordinates and rates");
        const int kind = variables[knowns[j]].kind, offset = variables[knowns[j]].offset, size = variables[knowns[j]].size;
        if ((size_t)size > ns) return said(unit, ERROR, "there are too few seeds");
        memcpy((kind == TIME ? &dt : kind == STATE ? dx : du) + offset, seed, sizeof(double) * (size_t)size);
        seed += size;
        ns -= (size_t)size;
    }
    const double *x = states(unit, room);
    if (!x || slopes_of(n->t, x, n->u, &n->loop[n->now], dt, dx, du, slopes)) return without_memory(unit);
    for (size_t j = 0; j < nu; j++) {
        if (unknowns[j] >= VARIABLES || variables[unknowns[j]].kind < STATE)
            return said(unit, ERROR, "derivatives exist of coordinates, rates, their derivatives and event indicators");
        const int kind = variables[unknowns[j]].kind, offset = variables[unknowns[j]].offset, size = variables[unknowns[j]].size;
        if ((size_t)size > no) return said(unit, ERROR, "there are too few places for the derivatives");
        memcpy(out, (kind == STATE ? dx : kind == RATE ? slopes : slopes + STATES) + offset, sizeof(double) * (size_t)size);
        out += size;
        no -= (size_t)size;
    }
    return OK;
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
    moved(&((Unit *)i)->n);
    return OK;
}

FMI int fmi3SetContinuousStates(Instance i, const double *x, size_t k)
{
    if (k != STATES) return said(i, ERROR, "the number of states is wrong");
    memcpy(((Unit *)i)->n.x, x, sizeof(double) * k);
    moved(&((Unit *)i)->n);
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

FMI int fmi3GetEventIndicators(Instance i, double *values, size_t k)
{
    if (k != INDICATORS) return said(i, ERROR, "the number of event indicators is wrong");
    if (indicate(i)) return ERROR;
    memcpy(values, ((Unit *)i)->n.z, sizeof(double) * k);
    return OK;
}

FMI int fmi3GetNumberOfEventIndicators(Instance i, size_t *k) { (void)i; *k = INDICATORS; return OK; }
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
    uint8_t ended = 0;
    double end = t + size;
    if (loop_again(&n->loop[n->now], &n->loop[!n->now])) return without_memory(unit);
    n->now = !n->now;
    if (iterated(unit, t, size / steps, (int32_t)steps, &ended, &end)) return ERROR;
    n->t = *reached = ended ? end : t + size;
    *ends = ended;
    return OK;
}
