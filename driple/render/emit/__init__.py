"""An answer in the words of a scheduler: one file per scheduler.

Answer of predict, or choice of plan --> ScheduledJob --> Slurm, Kubernetes, Kueue, KAI, SkyPilot
"""
