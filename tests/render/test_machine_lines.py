"""What `driple measure --machine` prints of a machine: one line for each part that was measured."""

from dataclasses import replace

from driple.catalog.machine_file import LoaderRate, MachineFile
from driple.render.machine_lines import machine_lines
from tests.catalog.test_machine_file import HOST, WHOLE


def test_each_part_has_a_line() -> None:
    heads = [line.split()[0] for line in machine_lines(WHOLE)]
    assert heads == ["machine", "host", "GPU", "copies", "links", "all_reduce", "data"]


def test_what_was_left_out_has_none() -> None:
    (line,) = machine_lines(MachineFile(file="m", host=HOST))
    assert line.startswith("host      20 us an op (11 to 30 by program), 40 us a trained tensor")


def test_the_fastest_number_of_workers_stands_beside_none() -> None:
    rates = (LoaderRate(workers=0, samples_per_s=500.0), LoaderRate(workers=2, samples_per_s=900.0))
    lines = list(machine_lines(replace(WHOLE, loader=rates)))
    assert lines[-1].startswith("data      samples/s: 900 with 2 workers, 500 with 0")
    lines = list(machine_lines(replace(WHOLE, loader=rates[:1])))
    assert lines[-1].count("with") == 1
