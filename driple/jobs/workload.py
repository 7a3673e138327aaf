"""`Workload`: one training job of the zoo by name, such as `resnet20/cifar10/b16/sgd/sync`.

Parts that differ from the usual follow the name: `resnet50/imagenet/b64/sgd/sync/fp16/nchw`.
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.errors import ConfigError

__all__ = ["DATA_FORMATS", "DATA_SETS", "OPTIMIZERS", "PRECISIONS", "DataSet", "Workload"]

OPTIMIZERS = ("sgd", "momentum", "rmsprop", "adam")
PRECISIONS = ("fp32", "fp16")
DATA_FORMATS = ("nhwc", "nchw")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """Shapes of a data set; the zoo feeds synthetic values of these shapes.

    Attributes:
        image_size: height and width of a square image in pixels; 0 for text.
        num_classes: classes, or the size of the vocabulary. CIFAR-10 and ImageNet have one more
            than published, for background, as in tf_cnn_benchmarks.
        sequence_length: tokens of a sentence; 0 for images.
    """

    image_size: int = 0
    num_classes: int = 0
    sequence_length: int = 0

    @property
    def kind(self) -> str:
        """What it holds: `images` or `text`."""
        return "images" if self.image_size else "text"


DATA_SETS = {
    "cifar10": DataSet(image_size=32, num_classes=11),
    "imagenet": DataSet(image_size=224, num_classes=1001),
    # ImageNet at a quarter of its size, for machines without a GPU.
    "imagenet64": DataSet(image_size=64, num_classes=200),
    "mnist": DataSet(image_size=28, num_classes=10),
    "europarl": DataSet(num_classes=32_000, sequence_length=50),
    # Short sentences and a small vocabulary of the same kind, for machines without a GPU.
    "europarl-short": DataSet(num_classes=4_000, sequence_length=16),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """One training job: model, data set and hyper-parameters (paper, section 2.4 and Table 2).

    Attributes:
        model: name in `driple.jobs.catalogue.MODELS`, such as `resnet20_v2`.
        data_set: name in `DATA_SETS`.
        batch_size: examples per worker and step.
        optimizer: one of `OPTIMIZERS`.
        sync: whether the workers' gradients are aggregated before they are applied.
        precision: one of `PRECISIONS`; fp16 keeps fp32 variables and scales the loss.
        data_format: one of `DATA_FORMATS`: where the channels of an image stand.
        width: share of the published number of channels or units in each layer; 1 is the
            published model. Narrow variants are what a CPU can train in under a second a step.
    """

    model: str
    data_set: str
    batch_size: int
    optimizer: str = "sgd"
    sync: bool = True
    precision: str = "fp32"
    data_format: str = "nhwc"
    width: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        for what, value, choices in (
            ("data set", self.data_set, tuple(DATA_SETS)),
            ("optimizer", self.optimizer, OPTIMIZERS),
            ("precision", self.precision, PRECISIONS),
            ("data format", self.data_format, DATA_FORMATS),
        ):
            if value not in choices:
                raise ConfigError(
                    f"no {what} is called '{value}'; choose from {', '.join(choices)}"
                )
        if self.data_format != "nhwc" and not self.data.image_size:
            raise ConfigError(f"{self.data_set} is text, and text has no data format; leave it out")
        if self.batch_size < 1:
            raise ConfigError(f"batch size must be at least 1, got {self.batch_size}")
        if not 0 < self.width <= 1:
            raise ConfigError(f"width must be in (0, 1], got {self.width}")

    @property
    def data(self) -> DataSet:
        """Shapes of the data set."""
        return DATA_SETS[self.data_set]

    @property
    def name(self) -> str:
        """Unique name: `model[-x0.25]/data set/b16/optimizer/sync|async[/fp16][/nchw]`."""
        width = "" if self.width == 1 else f"-x{self.width:g}"
        parts = [
            f"{self.model}{width}",
            self.data_set,
            f"b{self.batch_size}",
            self.optimizer,
            "sync" if self.sync else "async",
        ]
        parts += [self.precision] if self.precision != PRECISIONS[0] else []
        parts += [self.data_format] if self.data_format != DATA_FORMATS[0] else []
        return "/".join(parts)

    @property
    def file_name(self) -> str:
        """The name as a part of a path: `/` is written `_`."""
        return self.name.replace("/", "_")

    @classmethod
    def parse(cls, name: str) -> Workload:
        """The workload with this name (the inverse of `name`).

        Raises:
            ConfigError: not a name of this form.
        """
        parts = name.split("/")
        extra = parts[5:]
        precision = extra.pop(0) if extra and extra[0] in PRECISIONS[1:] else PRECISIONS[0]
        data_format = extra.pop(0) if extra and extra[0] in DATA_FORMATS[1:] else DATA_FORMATS[0]
        if (
            len(parts) < 5
            or extra
            or not parts[2].startswith("b")
            or parts[4] not in ("sync", "async")
        ):
            raise ConfigError(
                f"'{name}' names no workload; write model/data set/bBATCH/optimizer/sync, "
                "such as resnet20/cifar10/b16/sgd/sync, and /fp16 or /nchw after it if you like"
            )
        model, _, width = parts[0].partition("-x")
        try:
            return cls(
                model=model,
                data_set=parts[1],
                batch_size=int(parts[2][1:]),
                optimizer=parts[3],
                sync=parts[4] == "sync",
                precision=precision,
                data_format=data_format,
                width=float(width) if width else 1.0,
            )
        except ValueError as error:
            raise ConfigError(f"'{name}' names no workload: {error}") from error
