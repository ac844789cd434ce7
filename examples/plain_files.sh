#!/usr/bin/env bash
# From two plain text files to a tagger: one file with a text per line, one with the labels of each line.
#
#     bash examples/plain_files.sh [FOLDER]
set -euo pipefail
folder=${1:-$(mktemp -d)}
mkdir -p "$folder/data"

# example data instead of your own files: 600 lines of six words from one of three topics
declare -A words=(
    [cooking]="recipe oven butter flour sugar bake kitchen spoon dough pepper onion salt"
    ["sailing outdoors"]="boat wind harbour anchor mast rudder tide wave rope deck sail storm"
    [chess]="pawn knight castle checkmate opening endgame bishop queen board clock rook gambit"
)
RANDOM=1
for _ in $(seq 200); do
    for topic in "${!words[@]}"; do
        read -ra choice <<< "${words[$topic]}"
        line=""
        for _ in 1 2 3 4 5 6; do line+="${choice[RANDOM % ${#choice[@]}]} "; done
        echo "$line" >> "$folder/data/train_texts.txt"
        echo "$topic" >> "$folder/data/train_labels.txt"
    done
done

longtail inspect "$folder/data"
longtail train "$folder/data" --out "$folder/model" --overwrite
longtail predict "$folder/model" "bake it in the oven" "when does the tide turn?" -k 2 --table
