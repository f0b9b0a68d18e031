"""Random texts of the kinds that digit strips carry: readings, amounts, dates, times, postcodes."""

from __future__ import annotations

import numpy as np


def random_digits(random: np.random.Generator, length: int) -> str:
    """Returns `length` digits; about one string in five has runs of the same digit, which recognisers merge or drop."""
    digits = random.integers(0, 10, length)
    if length > 1 and random.random() < 0.2:
        for index in range(1, length):
            if random.random() < 0.6:
                digits[index] = digits[index - 1]
    return "".join(str(digit) for digit in digits)


def random_length(random: np.random.Generator, longest: int) -> int:
    """Draws a length from 1 to `longest`, short ones more often: half of them at most a third of `longest`."""
    share: float = float(random.random()) ** 1.5
    return max(1, round(longest * share))


def random_text(random: np.random.Generator, longest: int, *, marks: float = 0.5, spaces: bool = True) -> str:
    """Returns one text.

    Args:
        random: Source of randomness.
        longest: Greatest number of characters.
        marks: Share of texts that carry marks (`. , : / - +`), in [0, 1].
        spaces: Whether a space may group digits.
    """
    length = random_length(random, longest)
    if random.random() >= marks or length < 3:
        text = random_digits(random, length)
        if marks > 0 and random.random() < 0.02:
            text = str(random.choice(list(".,:/-+")))
        return text
    kind = random.integers(0, 8)
    if kind == 0:  # amount with a decimal mark
        whole, mark = random_digits(random, max(1, length - 3)), random.choice([".", ","])
        text = f"{whole}{mark}{random_digits(random, int(random.integers(1, 4)))}"
    elif kind == 1:  # amount with grouped thousands
        group, decimal = (",", ".") if random.random() < 0.5 else (".", ",")
        if spaces and random.random() < 0.4:
            group = " "
        whole = f"{int(random.integers(1, 10 ** min(9, max(4, length)))):,}".replace(",", group)
        text = whole + (f"{decimal}{random_digits(random, 2)}" if random.random() < 0.6 else "")
    elif kind == 2:  # date
        mark = random.choice(["/", "-", "."])
        day, month = f"{random.integers(1, 32):02d}", f"{random.integers(1, 13):02d}"
        year = str(random.integers(1800, 2100))
        parts = (
            [year, month, day] if random.random() < 0.3 else [day, month, year if random.random() < 0.6 else year[2:]]
        )
        text = str(mark).join(parts)
    elif kind == 3:  # time
        text = f"{random.integers(0, 24):02d}:{random.integers(0, 60):02d}"
        if random.random() < 0.4:
            text += f":{random.integers(0, 60):02d}"
    elif kind == 4:  # signed reading
        text = str(random.choice(["-", "+"])) + random_digits(random, max(1, length - 2))
        if random.random() < 0.5:
            text += str(random.choice([".", ","])) + random_digits(random, int(random.integers(1, 3)))
    elif kind == 5:  # groups: telephone, account or article numbers
        mark = " " if spaces and random.random() < 0.6 else str(random.choice(["-", ".", "/"]))
        groups = [random_digits(random, int(random.integers(1, 5))) for _ in range(int(random.integers(2, 6)))]
        text = mark.join(groups)
    else:  # anything at all
        symbols = list("0123456789" * 2 + ".,:/-+" + (" " if spaces else ""))
        text = "".join(random.choice(symbols, length))
    return " ".join(text[:longest].split())
