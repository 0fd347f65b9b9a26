# bash completion of benanza. The program itself tells its commands and options, so they are those of the version that runs:
# 'benanza [COMMAND...] --help=shell' prints a line for each: its name, its value or -, and what it is for.
_benanza()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} word name value help
    local -a command=() names=()
    COMPREPLY=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
        --) return ;; # what follows is another program's
        -* | =) ;;
        *) [ ${#command[@]} -ge 2 ] || command+=("$word") ;;
        esac
    done
    # --option=value: for bash these are three words
    [ "$cur" != = ] || { prev+== cur=; }
    [ "$prev" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]}
    prev=${prev%=}
    while IFS=$'\t' read -r name value help; do
        if [ "$name" = "$prev" ] && [ "$value" != - ]; then
            case $value in *'|'*) mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$cur") ;; esac
            return # another value: the names of files, by default
        fi
        case $name in -*) [ "${cur:0:1}" = - ] || continue ;; esac
        names+=("$name")
    done < <("${COMP_WORDS[0]}" "${command[@]}" --help=shell 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$cur")
}
complete -o default -o bashdefault -F _benanza benanza
