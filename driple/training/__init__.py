"""TRAIN: data set -> checkpoint, and how good it is (paper, sections 3.3 and 5).

    Dataset + Split + Preset  --loop.train-->          Checkpoint
    Dataset + methods         --evaluate.run_arena-->  errors of each method, fold by fold

Import the modules themselves: `config`, `metrics` and `baselines` need no torch, the others do.
"""
