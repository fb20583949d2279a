"""Dynamics under constraints: cut joints and constraint elements as rows, multipliers, elimination, impacts."""
