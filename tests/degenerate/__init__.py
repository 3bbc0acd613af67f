"""Every exact formula on and near the families where it degenerates: a table, and the test that reads it.

A formula degenerates where numerator and denominator vanish together, where nearly equal numbers are subtracted, at a
logarithm of a small number, at an inverse function near its end, and at coincident, antipodal or parallel vectors, equal
masses, zero, borders, beta -> 0 and infinity, d = 2. A row of the table names formula and family, says how to come to
`distance` of it, and has a reference that shares no step with the formula.
"""
