"""Words that name nothing in a picture: a label that holds one of them says nothing of the query."""

ENGLISH = """
a about above after all am an and any are around as at be been before behind being below beneath between both
but by can did do does doing down each for from had has have having he her here his how i if in inside into is
it its itself just me more most my near next no not of off on one only or other our out over own same she so
some such than that the their them then there these they this those through to together too two under until up
us very was we were what when where which while who whom why will with without you your image images photo
photograph photographs photos picture pictures
"""
OTHERS = """
aber al als am an ao auf aus avec bei bin bis com con da das de degli dei del della delle dem den der des desde
die do dos du durch e ein eine einem einen einer el em en entre es est et foto fotos für gli hinter i il im in
ist la las le les lo los mais mas mit nach não nicht no nos o oder os ou par para por pour près que qui sans se
sein sem sich sie sin sind sobre son sous su sul sulla sur um uma un una und une unter uno van vom von vor wie y
zu zum zur über
"""  # German, Spanish, French, Italian, Portuguese, Dutch
STOP_WORDS = frozenset(f"{ENGLISH} {OTHERS}".split())
