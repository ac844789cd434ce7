#!/bin/sh
# Environments for the peers of bench/linear.py, one each, since their pins clash:
#   sh bench/peers.sh FOLDER [NAME …]        # pecos omikuji napkinxc fasttext sklearn
# PYTHON names the interpreter (default python3; libpecos 1.2.8 has wheels up to 3.11).
set -eu
folder=${1:?sh bench/peers.sh FOLDER [NAME …]}
shift
[ $# -gt 0 ] || set -- pecos omikuji napkinxc fasttext sklearn
for name in "$@"; do
    case $name in
        pecos) packages="torch==2.13.0 libpecos==1.2.8" ;; # torch: libpecos asks for it, XR-Linear never uses it
        omikuji) packages="omikuji==0.5.2 numpy scipy" ;;
        napkinxc) packages="napkinxc==0.7.2 numpy scipy" ;;
        fasttext) packages="fasttext-community==0.11.9 numpy scipy" ;; # the other builds fail on numpy 2
        sklearn) packages="scikit-learn==1.9.1 numpy scipy" ;;
        *) echo "no peer is called $name: pecos, omikuji, napkinxc, fasttext, sklearn" >&2; exit 2 ;;
    esac
    test -x "$folder/$name/bin/python" || "${PYTHON:-python3}" -m venv "$folder/$name"
    "$folder/$name/bin/python" -m pip install --quiet $packages
    echo "--peer $name=$folder/$name/bin/python"
done
