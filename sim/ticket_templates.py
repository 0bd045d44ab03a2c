"""The wordings of the simulated support desk: 20 templates, and 3 that appear with a product launch. Pure data."""

from dataclasses import dataclass

CATEGORIES = ("billing", "technical", "account", "shipping", "refund", "security")
PRIORITIES = ("low", "normal", "high", "urgent")

NAMES = (
    "Amira", "Bram", "Chidi", "Daria", "Emeka", "Freya", "Goran", "Hana", "Imre", "Jolanta", "Kofi", "Leila",
    "Mateo", "Nadia", "Okan", "Priya", "Quentin", "Rosa", "Sanjay", "Tove", "Ugo", "Vera", "Wen", "Yusuf",
)  # fmt: skip
PRODUCTS = (
    "desk lamp", "kettle", "headset", "keyboard", "speaker", "tablet arm", "air filter", "projector", "coffee grinder",
    "night light",
)  # fmt: skip
CITIES = ("Aarhus", "Bilbao", "Cork", "Dresden", "Espoo", "Ghent", "Lyon", "Porto")
ORDERS = range(10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Template:
    """One way of writing in. Its labels are the truth of every ticket made from it."""

    key: str
    category: str
    priority: str
    wording: str
    is_hard: bool = False


TEMPLATES = (
    Template("double_charge", "billing", "high", "Order {order} was charged to my card twice. Please undo one, {name}"),
    Template("invoice_copy", "billing", "low", "My accountant lost the invoice of order {order}. May I have a copy?"),
    Template("change_card", "billing", "normal", "Where do I change the card my subscription is paid with?"),
    Template(
        "odd_fee", "billing", "normal",
        "There is a handling fee on the bill for my {product}, and your shop in {city} said there would be none.", True,
    ),
    Template(
        "no_power", "technical", "high",
        "{name} here. The {product} has been dead since this morning, charged or not, and I need it for work.",
    ),
    Template(
        "patchy_sync", "technical", "normal",
        "Since the update my files sync only some of the time, and never in {city}. Is that you or my line?", True,
    ),
    Template("app_crash", "technical", "normal", "Each time I open the settings page the app closes itself."),
    Template("pairing_help", "technical", "low", "Which button pairs the {product} with a phone?"),
    Template(
        "locked_out", "account", "urgent",
        "I cannot get into my account and the reset message never comes. {name}, on a deadline today",
    ),
    Template("new_address", "account", "low", "I have moved to {city}; please put that on my profile. Thanks, {name}"),
    Template("close_account", "account", "normal", "I would like to close my account. What happens to my data then?"),
    Template(
        "two_profiles", "account", "normal",
        "It seems I have two profiles, {name} and {name}2, and my orders show up on the wrong one.", True,
    ),
    Template("late_parcel", "shipping", "normal", "Order {order} should have reached {city} yesterday. Where is it?"),
    Template(
        "crushed_box", "shipping", "high",
        "The {product} of order {order} came in a crushed box and one corner of it is cracked.",
    ),
    Template(
        "half_delivery", "shipping", "high",
        "Only some of what {name} ordered is here, the {product} is not, and the tracking page says all is done.", True,
    ),
    Template(
        "late_refund", "refund", "normal",
        "I returned the {product} of order {order} two weeks ago and still have not seen the money.",
    ),
    Template("second_thoughts", "refund", "low", "Can the {product} of order {order} go back if I have not opened it?"),
    Template(
        "part_refund", "refund", "high",
        "You paid back less than I paid for the {product} and called the rest wear. That cannot be right.", True,
    ),
    Template("strange_login", "security", "urgent", "Someone from {city} has just signed in to my account. Not me!"),
    Template(
        "code_request", "security", "urgent",
        "A caller named {name} says he works for you and wants the code I was just sent. Does he?", True,
    ),
)  # fmt: skip

LAUNCH_TEMPLATES = (
    Template(
        "watch_preorder", "shipping", "normal", "When does the Ratchet Watch of order {order} leave the warehouse?"
    ),
    Template(
        "watch_pairing", "technical", "normal",
        "{name} again. My new Ratchet Watch finds the phone but never finishes pairing with it.",
    ),
    Template(
        "watch_pulse", "technical", "high",
        "The Ratchet Watch reads no pulse when {name} runs around {city}, though it does at home.", True,
    ),
)  # fmt: skip
