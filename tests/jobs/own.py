"""Models as users write them, for tests of FILE.py:FUNCTION; this file is executed by them."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

print("a user's file may print")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
        )

    def forward(self, images):
        return self.layers(images)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 16)
        self.layer = nn.LSTM(16, 16, batch_first=True)
        self.out = nn.Linear(16, 100)

    def forward(self, idx, targets=None):
        logits = self.out(self.layer(self.words(idx))[0])
        if targets is None:
            return logits
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Lora(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(64, 64)
        self.base.requires_grad_(False)
        self.down, self.up = nn.Linear(64, 4, bias=False), nn.Linear(4, 64, bias=False)
        self.head = nn.Linear(64, 10)
        self.head.requires_grad_(False)

    def forward(self, x):
        return self.head(torch.relu(self.base(x) + self.up(self.down(x))))


class Decides(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        return y if y.sum() > 0 else -y


def build_model():
    return Net()


def with_batch():
    return Net(), (torch.zeros(4, 3, 32, 32), torch.zeros(4, dtype=torch.long))


def with_loss():
    return Net(), nn.functional.cross_entropy


def words():
    return Words()


def lora():
    return Lora()


def decides():
    return Decides()


def with_values():
    """Computes with values, as drop-path rates often are, so that it needs the CPU."""
    model = Net()
    model.rates = [one.item() for one in torch.linspace(0, 1, 3)]
    return model


def dict_batch():
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
    model = BertForSequenceClassification(BertConfig(num_hidden_layers=1, **sizes))
    tokens = torch.ones(4, 16, dtype=torch.long)
    labels = torch.zeros(4, dtype=torch.long)
    return model, {"input_ids": tokens, "attention_mask": tokens, "labels": labels}


def needs(config):
    return Net()


def allocates():
    return Net(), torch.zeros(10**13, device="cpu")


def fails():
    raise ValueError("no such thing\nsecond line")


def no_model():
    return {"a": 1}


def never_ends():
    while True:
        pass


def ends_the_process():
    os._exit(3)


def data():
    return TensorDataset(torch.zeros(50, 3, 32, 32), torch.zeros(50, dtype=torch.long))


def loader():
    return DataLoader(data(), batch_size=5, shuffle=True)


def batch():
    return {"images": torch.zeros(6, 3, 32, 32), "label": torch.zeros(6, dtype=torch.long)}


def wrong_batch():
    return torch.zeros(6, 1, 32, 32), torch.zeros(6, dtype=torch.long)


def squared(outputs, labels):
    return outputs.square().mean()


def on_gpu():
    return Net().cuda()


def downloads():
    from urllib.error import URLError

    try:
        raise OSError("Name or service not known")
    except OSError as error:
        raise RuntimeError("weights") from URLError(error)


def reads_arguments():
    from argparse import ArgumentParser

    parser = ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.parse_args([])


def distributed():
    return nn.parallel.DistributedDataParallel(Net())


def compiled():
    return torch.compile(Net())


class Packed(Words):
    def forward(self, idx, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.words(idx), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        hidden, _ = nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True)
        return self.out(hidden[:, -1])


def packed():
    tokens, lengths = torch.zeros(4, 16, dtype=torch.long), torch.full((4,), 9)
    return Packed(), (tokens, lengths, torch.zeros(4, dtype=torch.long))


class LateWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(16, 100)
        self.words = nn.Embedding(100, 16)

    def forward(self, idx):
        return self.head(self.words(idx))


def late_words():
    return LateWords()


def in_float64():
    return nn.Linear(4, 4).double()


def as_numbers(outputs, labels):
    return nn.functional.mse_loss(outputs, labels.view(2, 4).double())


class Experts(nn.Module):
    """Each token goes to the expert of its largest score."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.score = nn.Embedding(64, 8), nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.out = nn.Linear(8, 64)

    def forward(self, idx):
        x = self.words(idx).flatten(0, 1)
        weight, best = self.score(x).softmax(-1).max(-1)
        mixed = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            (own,) = torch.where(best == number)
            if own.numel():
                mixed = mixed.index_add(0, own, expert(x[own]) * weight[own, None])
        return self.out(mixed.view(*idx.shape, 8))


def experts():
    torch.manual_seed(0)
    return Experts()


class ReturnsLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).square().mean()


def returns_loss():
    return ReturnsLoss()


def half_of_it(outputs, labels):
    return outputs / 2


class OnTheCpu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.where(torch.ones(4, dtype=torch.bool, device="cpu"), self.layer(x), x)


def on_the_cpu():
    return OnTheCpu()


def two_models():
    return nn.Linear(4, 4), Net()
