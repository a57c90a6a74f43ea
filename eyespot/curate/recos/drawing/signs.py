"""Short texts that stand on signs, in Chinese and in English: each pair says the same."""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

from eyespot.types import UsageError

UNITS = {"menu": ("元", "yuan", (2, 60)), "direction": ("米", "m", (50, 900))}  # what kinds may have a number


class Phrase(NamedTuple):
    """One text in both languages, and the kind of sign it stands on."""

    chinese: str
    english: str
    kind: str


PHRASES: tuple[Phrase, ...] = (
    Phrase("小心地滑", "slippery floor", "warning"),
    Phrase("禁止吸烟", "no smoking", "prohibition"),
    Phrase("禁止停车", "no parking", "prohibition"),
    Phrase("禁止入内", "no entry", "prohibition"),
    Phrase("请勿触摸", "do not touch", "prohibition"),
    Phrase("请勿拍照", "no photographs", "prohibition"),
    Phrase("保持安静", "keep quiet", "request"),
    Phrase("请排队", "please queue", "request"),
    Phrase("请洗手", "please wash your hands", "request"),
    Phrase("节约用水", "save water", "request"),
    Phrase("爱护花草", "take care of the plants", "request"),
    Phrase("当心触电", "danger of electric shock", "warning"),
    Phrase("小心台阶", "mind the step", "warning"),
    Phrase("小心轻放", "handle with care", "warning"),
    Phrase("前方学校", "school ahead", "warning"),
    Phrase("出口", "exit", "direction"),
    Phrase("入口", "entrance", "direction"),
    Phrase("地铁站", "subway station", "direction"),
    Phrase("火车站", "railway station", "direction"),
    Phrase("公共汽车站", "bus stop", "direction"),
    Phrase("机场", "airport", "direction"),
    Phrase("停车场", "car park", "direction"),
    Phrase("洗手间", "toilets", "direction"),
    Phrase("电梯", "lift", "direction"),
    Phrase("楼梯", "stairs", "direction"),
    Phrase("医院", "hospital", "place"),
    Phrase("药店", "pharmacy", "place"),
    Phrase("图书馆", "library", "place"),
    Phrase("博物馆", "museum", "place"),
    Phrase("动物园", "zoo", "place"),
    Phrase("书店", "bookshop", "place"),
    Phrase("花店", "flower shop", "place"),
    Phrase("面包店", "bakery", "place"),
    Phrase("邮局", "post office", "place"),
    Phrase("银行", "bank", "place"),
    Phrase("学校", "school", "place"),
    Phrase("餐厅", "restaurant", "place"),
    Phrase("红茶", "black tea", "menu"),
    Phrase("绿茶", "green tea", "menu"),
    Phrase("牛奶", "milk", "menu"),
    Phrase("苹果汁", "apple juice", "menu"),
    Phrase("牛肉面", "beef noodles", "menu"),
    Phrase("鸡肉饭", "chicken rice", "menu"),
    Phrase("蔬菜汤", "vegetable soup", "menu"),
    Phrase("三个苹果", "three apples", "notice"),
    Phrase("今日休息", "closed today", "notice"),
    Phrase("明天见", "see you tomorrow", "notice"),
    Phrase("生日快乐", "happy birthday", "notice"),
    Phrase("新年快乐", "happy new year", "notice"),
    Phrase("欢迎光临", "welcome", "notice"),
    Phrase("谢谢", "thank you", "notice"),
    Phrase("早上好", "good morning", "notice"),
    Phrase("晚安", "good night", "notice"),
    Phrase("营业中", "open", "notice"),
    Phrase("半价", "half price", "notice"),
)


def invent(chance: Random) -> Phrase:
    """One of the texts; what can be bought perhaps with a price, a way with a distance."""
    phrase = chance.choice(PHRASES)
    if phrase.kind not in UNITS or chance.random() < 0.3:
        return phrase
    chinese, english, bounds = UNITS[phrase.kind]
    number = chance.randint(*bounds) // 5 * 5 if phrase.kind == "direction" else chance.randint(*bounds)
    return Phrase(f"{phrase.chinese} {number}{chinese}", f"{phrase.english} {number} {english}", phrase.kind)


def translated(text: str) -> str:
    """The text in the other language, number and unit with it; `UsageError` for one that is not among the signs."""
    found = re.fullmatch(r"(.*?)(?: (\d+) ?(元|米|yuan|m))?", text)
    assert found is not None
    words, number, unit = found.groups()
    phrase = next((one for one in PHRASES if words in one[:2]), None)
    if phrase is None:
        raise UsageError(f"nobody here can translate {text!r}; add it to the list of signs")
    into = int(words == phrase.chinese)
    if unit is None:
        return phrase[into]
    units = next(one for one in UNITS.values() if unit in one[:2])
    return f"{phrase[into]} {number}{' ' if into else ''}{units[into]}"
