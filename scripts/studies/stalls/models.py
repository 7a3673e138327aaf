"""Models of the paper's figure 16."""

__all__ = ["MICRO"]

MICRO = (
    *(f"resnet{depth}" for depth in (18, 34, 50, 101, 152)),
    *(f"vgg{depth}" for depth in (11, 13, 16, 19)),
    "resnet50-nores",
    "resnet50-nonorm",
)
