"""Published problems of structural reliability: limit states of independent standard normal numbers, and their answers.

RP8 to RP111 are those of the black-box reliability challenge of 2019 (Rozsas and Slobbe, TNO), the four branches are
Waarts' (2000). Probabilities are those of closed forms, quadrature on a fine grid or 1e8 samples (to 0.4 %); the published
ones stand beside them, and those of RP57, RP60, RP77, RP89 and RP111, from samples themselves, are off by 0.5 to 7 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

ROOT2 = np.sqrt(2.0)


@dataclass(frozen=True)
class Published:
    """g of points (..., d), which fail at zero or less; probability: what tests compare with; published: what is
    printed."""

    g: Callable[[np.ndarray], np.ndarray]
    inputs: int
    probability: float
    published: float


def lognormal(u, mean, deviation):
    """Numbers with this mean and standard deviation."""
    s2 = np.log1p((deviation / mean) ** 2)
    return mean * np.exp(np.sqrt(s2) * u - s2 / 2)


def gumbel(u, mean, deviation):
    """Largest values with this mean and standard deviation."""
    scale = deviation * np.sqrt(6) / np.pi
    return mean - np.euler_gamma * scale - scale * np.log(-log_ndtr(u))


def split(u):
    return np.moveaxis(u, -1, 0)


def rp8(u):
    a, b, c, d, e, f = split(
        lognormal(u, np.array([120, 120, 120, 120, 50, 40.0]), np.array([12, 12, 12, 12, 10, 8.0]))
    )
    return a + 2 * b + 2 * c + d - 5 * e - 5 * f


def rp14(u):
    u1, u2, u3, u4, u5 = split(u)
    outer, size = 39 + 0.1 * u2, gumbel(u3, 1500, 350) * (400 + 0.1 * u4)
    return 70 + 10 * ndtr(u1) - 32 / (np.pi * outer**3) * np.sqrt(size**2 / 16 + (250000 + 35000 * u5) ** 2)


def rp22(u):
    x, y = split(u)
    return 2.5 - (x + y) / ROOT2 + 0.1 * (x - y) ** 2


def rp24(u):
    x, y = split(10 + 3 * u)
    return 2.5 - 0.2357 * (x - y) + 0.00463 * (x + y - 20) ** 4


def rp25(u):
    x, y = split(u)
    return np.maximum(x**2 - 8 * y + 16, -16 * x + y + 32)


def rp28(u):
    x, y = split(u)
    return (78064 + 11710 * x) * (0.0104 + 0.00156 * y) - 146.14


def rp31(u):
    x, y = split(u)
    return 2 - y + 256 * x**4


def rp33(u):
    return np.minimum(3 * np.sqrt(3) - u.sum(-1), 3 - u[..., 2])


def rp35(u):
    x, y = split(u)
    return np.minimum(2 - y + np.exp(-0.1 * x**2) + (0.2 * x) ** 4, 4.5 - x * y)


def rp38(u):
    means = np.array([350, 50.8, 3.81, 173, 9.38, 33.1, 0.036])
    a, b, c, d, e, f, h = split(means * (1 + 0.1 * u))
    top = d**2 - 4 * e * f * h**2 + d * (f + 4 * e + 2 * f * h)
    return 15.59e4 - a * b**3 / (2 * c**3) * top / (d * e * (d + f + 2 * f * h))


def rp53(u):
    x, y = split(np.array([1.5, 2.5]) + u)
    return np.sin(2.5 * x) + 2 - (x**2 + 4) * (y - 1) / 20


def rp54(u):
    return -log_ndtr(-u).sum(-1) - 8.951


def rp55(u):
    x, y = split(2 * ndtr(u) - 1)
    d = x - y
    bent, wide = 0.2 + 0.6 * d**4, 5 / ROOT2 - 2.2
    return np.min([bent - d / ROOT2, bent + d / ROOT2, d + wide, wide - d], axis=0)


def rp57(u):
    x, y = split(u)
    return np.minimum(np.maximum(-(x**2) + y**3 + 3, 2 - x - 8 * y), (x + 3) ** 2 + (y + 3) ** 2 - 4)


def rp60(u):
    means = np.array([2200, 2100, 2300, 2000, 1200.0])
    a, b, c, d, load = split(lognormal(u, means, means * np.array([0.1, 0.1, 0.1, 0.1, 0.4])))
    single = np.maximum(d - load, np.minimum(b, c) - load)
    return np.minimum(a - load, np.maximum(np.minimum(np.minimum(b, c), d) - load / 2, single))


def rp63(u):
    return 0.1 * (u[..., 1:] ** 2).sum(-1) - u[..., 0] - 4.5


def rp75(u):
    return 3 - u[..., 0] * u[..., 1]


def rp77(u):
    x, y, z = 10 + 0.5 * u[..., 0], u[..., 1], 4 + u[..., 2]
    return np.where(z <= 5, x - y - z, z - y)


def rp89(u):
    x, y = split(u)
    return np.minimum(8 - x**2 - y, 6 - x / 5 - y)


def rp91(u):
    means, deviations = np.array([0.07433, 0.1, 13, 4751, -684]), np.array([0.005, 0.01, 60, 48, 11])
    a, b, c, d, e = split(means + deviations * u)
    first = 0.847 + 0.96 * b + 0.986 * c - 0.216 * d + 0.077 * b**2 + 0.11 * c**2 + 7 / 378 * d**2
    first += -c * b - 0.106 * b * d - 0.11 * c * d
    return np.min([first, 84000 * a / np.sqrt(c**2 + d**2 - c * d + 3 * e**2) - 1, 84000 * a / np.abs(d) - 1], axis=0)


def rp107(u):
    return 5 * np.sqrt(10) - u.sum(-1)


def rp110(u):
    x, y = split(u)
    return np.minimum(np.where(x <= 3.5, 0.85 - 0.1 * x, 4 - x), np.where(y <= 2, 2.3 - y, 0.5 - 0.1 * y))


def rp111(u):
    return 12.5 - np.abs(u[..., 0] * u[..., 1])


def four_branches(u):
    x, y = split(u)
    bent, out = 3 + 0.1 * (x - y) ** 2, (x + y) / ROOT2
    return np.min([bent - out, bent + out, x - y + 7 / ROOT2, y - x + 7 / ROOT2], axis=0)


def outside(u):
    """Failure beyond a radius of 5, in all directions alike."""
    return 5 - np.linalg.norm(u, axis=-1)


PROBLEMS = {
    "RP8": Published(rp8, 6, 7.8814e-4, 7.9e-4),
    "RP14": Published(rp14, 5, 7.6565e-4, 7.7285e-4),
    "RP22": Published(rp22, 2, 4.2073e-3, 4.2073055e-3),
    "RP24": Published(rp24, 2, 2.85996e-3, 2.86e-3),
    "RP25": Published(rp25, 2, 4.14851e-5, 4.148566e-5),
    "RP28": Published(rp28, 2, 1.453296e-7, 1.45e-7),
    "RP31": Published(rp31, 2, 3.226681e-3, 3.2266812e-3),
    "RP33": Published(rp33, 3, 2.575598e-3, 2.57e-3),
    "RP35": Published(rp35, 2, 3.478947e-3, 3.47894632e-3),
    "RP38": Published(rp38, 7, 8.0648e-3, 8.1e-3),
    "RP53": Published(rp53, 2, 3.132049e-2, 3.13e-2),
    "RP54": Published(rp54, 20, 9.906031e-4, 9.98e-4),
    "RP55": Published(rp55, 2, 0.560014, 0.560014428),
    "RP57": Published(rp57, 2, 2.823673e-2, 2.84e-2),
    "RP60": Published(rp60, 5, 4.4798e-2, 4.56e-2),
    "RP63": Published(rp63, 100, 3.769436e-4, 3.79e-4),
    "RP75": Published(rp75, 2, 9.8193e-3, 9.8192987e-3),
    "RP77": Published(rp77, 3, 2.690844e-7, 2.87e-7),
    "RP89": Published(rp89, 2, 5.471283e-3, 5.43e-3),
    "RP91": Published(rp91, 5, 6.9251e-4, 6.97e-4),
    "RP107": Published(rp107, 10, 2.8665157e-7, 2.92e-7),
    "RP110": Published(rp110, 2, 3.189104e-5, 3.19e-5),
    "RP111": Published(rp111, 2, 8.035091e-7, 7.65e-7),
    "four branches": Published(four_branches, 2, 2.222795e-3, 2.222795e-3),
    "outside": Published(outside, 2, 3.7266532e-6, 3.7266532e-6),
}
