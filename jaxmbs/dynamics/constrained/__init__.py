"""Dynamics under constraints: cut joints and constraint elements as constraint rows, multipliers, elimination, impacts."""
