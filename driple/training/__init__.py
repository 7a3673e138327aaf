"""TRAIN: data set -> checkpoint, with its errors (paper, sections 3.3 and 5).

    Dataset + Split + Preset  --loop.train-->          Checkpoint
    Dataset + methods         --evaluate.run_benchmark-->  errors of each method, fold by fold

Import the modules directly: `config`, `metrics` and `baselines` need no torch, the others do.
"""
