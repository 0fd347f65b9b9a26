# fish completion of benanza. The program itself tells its commands and options, so they are those of the version that runs:
# 'benanza [COMMAND...] --help=shell' prints a line for each: its name, its value or -, and what it is for.
function __benanza_offers
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l previous $words[-1]
    set -l before # what stands before the value in --option=value
    set -l command
    if contains -- -- $words # what follows is another program's
        __fish_complete_path $current
        return
    end
    for word in $words[2..-1]
        string match -q -- '-*' $word; or test (count $command) -ge 2; or set -a command $word
    end
    if string match -q -- '--*=*' $current
        set previous (string replace -r '=.*' '' -- $current)
        set before $previous=
        set current (string replace -r '^[^=]*=' '' -- $current)
    end
    set -l offered
    for line in ($words[1] $command --help=shell 2>/dev/null)
        set -l field (string split \t -- $line)
        if string match -q -- "$field[1]" $previous; and not string match -q -- - $field[2]
            if string match -q '*|*' -- $field[2]
                printf '%s\n' "$before"(string split '|' -- $field[2])
            else
                printf '%s\n' "$before"(__fish_complete_path $current)
            end
            return
        end
        if string match -q -- '-*' $current; or not string match -q -- '-*' $field[1]
            set -a offered $field[1]\t$field[3]
        end
    end
    if set -q offered[1]
        printf '%s\n' $offered
    else
        __fish_complete_path $current
    end
end
complete -c benanza -f -a '(__benanza_offers)'
