"""Texts that have a shape: numbers, prices, dates, times, codes, telephone numbers, addresses of mail and of pages."""

from __future__ import annotations

from collections.abc import Callable

from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.texts.words import MONTHS

_DIGITS = "0123456789"
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CURRENCIES = ("$", "€", "£", "EUR", "USD", "CHF", "RM", "$", "€", "¥", "kr", "Fr.", "GBP", "")
_ENDINGS = ("com", "org", "net", "de", "fr", "ch", "co.uk", "eu", "info", "io", "edu", "gov")


def digits(dice: Dice, length: int) -> str:
    """Returns so many digits; now and then runs of one."""
    text = "".join(dice.pick(_DIGITS) for _ in range(length))
    if length > 1 and dice.chance(0.12):
        run = dice.whole(1, length)
        return text[:-run] + text[-run] * run
    return text


_UNITS = ("st", "nd", "rd", "th", "km", "kg", "cm", "m", "g", "ml", "L", "h", "x")


def number(dice: Dice) -> str:
    """Returns a number: whole, grouped, decimal, signed, a share, an ordinal."""
    kind = dice.unit()
    if kind < 0.45:
        return digits(dice, dice.whole(1, 5) if dice.chance(0.75) else dice.whole(5, 11))
    if kind < 0.6:
        return f"{digits(dice, dice.whole(1, 5))}{dice.pick('.,')}{digits(dice, dice.whole(1, 4))}"
    if kind < 0.7:
        return f"{dice.whole(1000, 10_000_000):,}".replace(",", dice.pick((",", ".", " ", "'")))
    if kind < 0.8:
        return f"{dice.pick('+-')}{digits(dice, dice.whole(1, 4))}" + (
            f".{digits(dice, 1)}" if dice.chance(0.3) else ""
        )
    return _number_with_more(dice)


def _number_with_more(dice: Dice) -> str:
    kind = dice.unit()
    if kind < 0.4:
        return f"{dice.whole(0, 101)}{dice.pick(('%', '.0%', ' %', '.5%'))}"
    if kind < 0.65:
        return f"{dice.whole(1, 100)}{dice.pick(_UNITS)}"
    if kind < 0.85:
        return f"{dice.whole(1, 20)}{dice.pick(('/', '-', ' x ', ':', ' - ', 'x'))}{digits(dice, dice.whole(1, 4))}"
    return f"{dice.pick(('No. ', '#', 'Nr. ', 'N° ', 'no.'))}{digits(dice, dice.whole(1, 6))}"


def price(dice: Dice) -> str:
    """Returns a price, with a currency before, behind, or not at all."""
    whole = digits(dice, dice.whole(1, 4)).lstrip("0") or "0"
    mark = "." if dice.chance(0.7) else ","
    if len(whole) > 3:
        whole = f"{int(whole):,}".replace(",", "," if mark == "." else ".")
    amount = f"{whole}{mark}{digits(dice, 2)}" if dice.chance(0.85) else f"{whole}{dice.pick(('', '.-', ',-'))}"
    currency = dice.pick(_CURRENCIES)
    if not currency or dice.chance(0.3):
        return f"{dice.pick(('', '', '-'))}{amount}"
    space = " " if len(currency) > 1 and dice.chance(0.7) else ""
    return f"{currency}{space}{amount}" if dice.chance(0.7) else f"{amount}{space or ' '}{currency}"


def date(dice: Dice, language: str = "en") -> str:
    """Returns a date, in figures or with the name of the month."""
    day, month = dice.whole(1, 32), dice.whole(1, 13)
    year = dice.whole(1850, 2035)
    if dice.chance(0.3):
        name = MONTHS[language].split()[month - 1]
        if dice.chance(0.3):
            name = name[:3] + ("." if dice.chance(0.5) else "")
        if language == "en" and dice.chance(0.6):
            return f"{name} {day}, {year}"
        return f"{day}{'.' if language == 'de' else ''} {name}{f' {year}' if dice.chance(0.8) else ''}"
    mark = dice.pick("/-..")
    short = f"{year % 100:02d}" if dice.chance(0.4) else str(year)
    if dice.chance(0.2):
        return f"{year}{mark}{month:02d}{mark}{day:02d}"
    return f"{day:02d}{mark}{month:02d}{mark}{short}" if dice.chance(0.7) else f"{day}{mark}{month}{mark}{short}"


def time(dice: Dice) -> str:
    """Returns a time of day."""
    hour, minute = dice.whole(0, 24), dice.whole(0, 60)
    if dice.chance(0.35):
        suffix = dice.pick(("AM", "PM", " AM", " PM", "am", "pm"))
        return f"{hour % 12 or 12}:{minute:02d}{suffix}" if dice.chance(0.8) else f"{hour % 12 or 12}{suffix}"
    seconds = f":{dice.whole(0, 60):02d}" if dice.chance(0.4) else ""
    return f"{hour:02d}:{minute:02d}{seconds}{dice.pick(('', '', '', ' Uhr', ' h'))}"


def code(dice: Dice) -> str:
    """Returns a code of capitals and digits in groups, as on labels, plates and tickets."""
    groups = []
    for _ in range(dice.whole(1, 4)):
        kind = dice.unit()
        pool = _DIGITS if kind < 0.4 else _CAPITALS if kind < 0.65 else _DIGITS + _CAPITALS
        groups.append("".join(dice.pick(pool) for _ in range(dice.whole(1, 6))))
    return dice.pick(("-", "", " ", "/", "-", ".")).join(groups)


def phone(dice: Dice) -> str:
    """Returns a telephone number."""
    mark = dice.pick((" ", "-", ".", " ", "/"))
    start = dice.pick(("0", "+49 ", "+33 ", "+1 ", "(0", "0", ""))
    area = digits(dice, dice.whole(2, 4))
    rest = mark.join(digits(dice, dice.whole(2, 5)) for _ in range(dice.whole(1, 4)))
    name = dice.pick(("", "", "", "Tel: ", "TEL ", "Tel. ", "Fax: ", "T: "))
    return f"{name}{start}{area}{')' if start == '(0' else ''}{mark}{rest}"


def email(dice: Dice, word: Callable[[], str]) -> str:
    """Returns an e-mail address made of words."""
    name = word() + (dice.pick(("", ".", "_", "-")) + word() if dice.chance(0.4) else "")
    number = digits(dice, dice.whole(1, 5)) if dice.chance(0.2) else ""
    return f"{name}{number}@{word()}.{dice.pick(_ENDINGS)}".lower()


def url(dice: Dice, word: Callable[[], str]) -> str:
    """Returns the address of a page, made of words."""
    start = dice.pick(("www.", "www.", "http://", "https://", "https://www.", ""))
    name = word() + (dice.pick(("", "-")) + word() if dice.chance(0.4) else "")
    path = f"/{word()}" if dice.chance(0.3) else ""
    address = f"{start}{name}.{dice.pick(_ENDINGS)}{path}"
    return address.lower() if dice.chance(0.85) else address
