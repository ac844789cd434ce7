"""A tagger from plain lists of texts and tags, in one call.

    python examples/tag_texts.py

The bundled corpus is used here instead of your own texts: any list of strings, with a list of tags for each, works.
"""

import longtail

corpus = longtail.read("debian-related")
texts = list(corpus.train.texts[:5000])
tags = [[corpus.labels.keys[int(j)] for j in corpus.train.Y[i].indices] for i in range(len(texts))]

model = longtail.fit(texts, tags)
scores = model.about["validation"]["scores"]
print(f"P@1 {scores['P@1']:.1f}, P@5 {scores['P@5']:.1f} on {model.about['validation']['points']} held-out texts")

for text, suggested in zip(
    questions := ["GNOME image viewer", "Perl XML parser"], model.predict(questions, k=3).keys(), strict=True
):
    print(f"{text}: {', '.join(suggested)}")
