"""Laws of tables of runs: grids, factors, reach and reliability, sizes, intervals.

Nothing here needs a layer or torch.
"""
