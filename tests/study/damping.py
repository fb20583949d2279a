"""A controller's law in a file of its own, which a study's file names."""


def law(model, t, q, v, state, readings):
    return state + 1, -2.0 * readings["imu"][1]
