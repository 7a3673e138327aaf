"""Callbacks of trainers: predicted beside measured, while a training runs. One file per trainer.

hugging_face: `TrainerWatch`, of transformers      lightning: `LightningWatch`
"""
