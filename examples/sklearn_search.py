"""longtail inside scikit-learn: choose settings by cross-validation, then ask why a label was given.

    python examples/sklearn_search.py        # needs the extra: pip install 'longtail[sklearn]'

A part of the bundled corpus is used here instead of your own texts and tags.
"""

from sklearn.model_selection import GridSearchCV, KFold

import longtail
from longtail.sklearn import LongtailClassifier, scorer

corpus = longtail.read("debian-related")
texts = list(corpus.train.texts[:6000])
tags = [[corpus.labels.keys[int(j)] for j in corpus.train.Y[i].indices] for i in range(len(texts))]

search = GridSearchCV(
    LongtailClassifier("xr-linear", k=3, random_state=0),
    {"C": [0.3, 1.0], "prune": [0.0, 0.1]},
    scoring=scorer("nDCG@5"),
    cv=KFold(3, shuffle=True, random_state=0),
)
search.fit(texts, tags)
print(f"best of {len(search.cv_results_['params'])} settings: {search.best_params_}, nDCG@5 {search.best_score_:.3f}")

tagger = search.best_estimator_
question = "GNOME image viewer"
print(f"{question}: {', '.join(tagger.predict_labels([question])[0])}")

reason = tagger.model_.explain(question, k=1).reasons[0]
words = ", ".join(f"{term.term} {term.contribution:+.2f}" for term in reason.own.terms)
print(f"why {reason.label}: {words}, bias {reason.own.bias:+.2f} = {reason.own.margin:+.2f}")
