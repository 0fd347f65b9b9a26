#compdef benanza
# zsh completion of benanza. The program itself tells its commands and options, so they are those of the version that runs:
# 'benanza [COMMAND...] --help=shell' prints a line for each: its name, its value or -, and what it is for.
_benanza()
{
    local word name value help previous=${words[CURRENT-1]}
    local -a command offers
    for word in ${words[2,CURRENT-1]}; do
        case $word in
        --) _files; return ;; # what follows is another program's
        -*) ;;
        *) (( $#command < 2 )) && command+=($word) ;;
        esac
    done
    if [[ $PREFIX == --*=* ]]; then
        previous=${PREFIX%%=*}
        compset -P 1 '*='
    fi
    while IFS=$'\t' read -r name value help; do
        if [[ $name == $previous && $value != - ]]; then
            if [[ $value == *'|'* ]]; then compadd -- ${(s:|:)value}; else _files; fi
            return
        fi
        [[ $name == -* && $PREFIX != -* ]] || offers+=("${name//:/\\:}:$help")
    done < <($words[1] $command --help=shell 2>/dev/null)
    (( $#offers )) && _describe benanza offers || _files
}
if [[ $funcstack[1] == _benanza ]]; then _benanza "$@"; else compdef _benanza benanza; fi
