"""Content hashes of all versions of the shipped rubrics. Add lines, never change them: stored scores refer to these
versions."""

from __future__ import annotations

VERSIONS: dict[tuple[str, str, int], str] = {
    ("answer_class", "en", 1): "ddc1796670a839e1699d7c9728c86dd25bf23ae608269b1d5777c1b7d0a1b54f",
    ("answer_class", "ko", 1): "bb73d6d5e332b8aff21aa0889c5f9848b8d5975271f20df39bea73ae345fca7d",
    ("answer_quality", "en", 1): "52f579278687ca5de2de4640ab38b4b42fb950aaa0d3717c904af564dc5914ce",
    ("answer_quality", "ko", 1): "c636cef2feabf22e8f4865b0f41eec8443b1a2c3d2bef782a9c3abf61ccbf49d",
    ("answer_relevancy", "en", 1): "fa8cc77bd4ad921e088d0f0a0725c72a0d2d064a8875bbdebb8e89034a451e23",
    ("answer_relevancy", "ko", 1): "1e0bfc1d6a8b970f5d4207ac87bf54a02fcf87be73f1610025043cb0f399e382",
    ("asked_back", "en", 1): "6932d692a1f879160e2323be00feb64e98ae1a2c35d84944cb207b1445f81f4e",
    ("asked_back", "ko", 1): "09fa1d50682110d6e0a456a1d8ab2737db5e47e6735a374187f567b69615a6ad",
    ("claims", "en", 1): "9ba7e985c8e404546dcc67fd4ebd171ecdb3f4a3c676275c5cf95d8860be3ed2",
    ("claims", "ko", 1): "cb2249d4ed4a1571f5f2560e19f8a738668aa0b32c7c7e1d12b0332f00b793cf",
    ("factual_accuracy", "en", 1): "8d0ac0e7b4b74b3a2ba121aa2c14705e11e349bb534d43aa918097b94cee1a29",
    ("factual_accuracy", "ko", 1): "ef71c0b9df4693df92b4d5e9ac0cfd4df6ff90ec7bd63beafab65680e2565e4f",
    ("generation_faithfulness", "en", 1): "aad33b0ac1f26fae2ffc006f91a5c2febc7b1772eb24fac3590973a0a2c23fca",
    ("generation_faithfulness", "ko", 1): "3f5aea58d426ff3b30f1b74f6c15f431d56b56dc80dac0b242dca57e2e6a9ab2",
    ("negative_questions", "en", 1): "d5318672ed02fdfa5a1d347e15f8f93768100b864087add6ab8fa1ada76ef662",
    ("negative_questions", "ko", 1): "d1840d28645fc3670731c7c7fffbe878ad24f71ba9d6bed320bac139339b33ac",
    ("nuggets", "en", 1): "3e1def46f4831284c95571d76f6d73cc8ac248f53f9538afcbc0463c38be3d0e",
    ("nuggets", "ko", 1): "29231b6204965957dacad7477eb9ad2cb8393a9d2a5555fa0b5e88d85b718f21",
    ("pairwise", "en", 1): "058948d527903c049407c067dcabb8a0a8a7b0ac5cbcc0aa2f88c33cac1738b2",
    ("pairwise", "ko", 1): "9774ef109b5ec2a318e3b5bbbf2bfae75bf2c9e005ca06ba8de5b33f95311f05",
    ("passages", "en", 1): "93685704c1b98cae16c81bc352a0b555a2153bfe8b0fc161d399efad347989b6",
    ("passages", "ko", 1): "864464417e05f2f1214afbe99f4062256e8a3c412ae7cf244951d8af03028f5a",
    ("proposals", "en", 1): "d363c13de57b75ba7ee19b239a66bd78c6ae936e6d4ff8e06076810f73f75dfe",
    ("proposals", "ko", 1): "5b4ab7f21952ae10e2ed2f4e2ff931c70633f214c950d9d1085886375b9eb5fa",
    ("regulation_quality", "en", 1): "782348fd43b1c8430c23ca7c77d430c1d0826c5e987f4fa99a49c2a037eb5437",
    ("regulation_quality", "ko", 1): "fa137c81ac4221f5ea9cc0db5f963b3a1c59214606d584abe12ddb262b830718",
    ("statements", "en", 1): "4d69add37f185ce7332df39a0154e3217d9c83266b05de8ad671470cbc54aff1",
    ("statements", "ko", 1): "cd5a094a1fb92afce5fb98ab544aebe387ff1e4f968446ce9494418a0e1a5225",
}
