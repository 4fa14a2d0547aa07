"""Korean dates in the style of the English pages: 24 hours, two digits, nothing after the time."""

DATE_FORMAT = "Y년 n월 j일"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "Y년 n월 j일 H:i"
SHORT_DATE_FORMAT = "Y-m-d"
SHORT_DATETIME_FORMAT = "Y-m-d H:i"
