"""Callbacks of trainers: predicted beside measured, while a training runs. One file per trainer.

hugging_face: `DripleCallback` of transformers' Trainer    lightning: that of Lightning's
"""
