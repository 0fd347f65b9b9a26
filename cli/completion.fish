# fish completion of benanza. The program itself tells its commands and options, so they are those of the version that runs:
# 'benanza [COMMAND...] --help=shell' prints a line for each: its name, its value or -, and what it is for.
function __benanza_offers
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l command
    contains -- -- $words; and return # what follows is another program's
    for word in $words[2..-1]
        string match -q -- '-*' $word; or test (count $command) -ge 2; or set -a command $word
    end
    for line in ($words[1] $command --help=shell 2>/dev/null)
        set -l field (string split \t -- $line)
        if test "$field[1]" = "$words[-1]" -a "$field[2]" != -
            string match -q '*|*' -- $field[2]; and string split '|' -- $field[2]
            return
        end
        if string match -q -- '-*' $current; or not string match -q -- '-*' $field[1]
            printf '%s\t%s\n' $field[1] $field[3]
        end
    end
end
complete -c benanza -a '(__benanza_offers)'
