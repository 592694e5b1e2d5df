import type { Argument, Command, Option } from 'commander';
import { connectionGroup } from '../src/cli/options.ts';
import { createProgram } from '../src/cli/program.ts';

/** Width of the help whose texts are taken over. */
const helpWidth = 80;

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');
const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.:]$/.test(text) ? '' : '.'}`;

/** What a command adds after its help: prose, and examples. */
function textAfter(command: Command): { prose: string; examples: string } {
  let help = '';
  command.configureOutput({
    getOutHelpWidth: () => helpWidth,
    writeOut: (text) => {
      help += text;
    },
  });
  command.outputHelp();
  const after = help.slice(command.helpInformation().length).trim();
  const [prose = '', examples = ''] = after.split(/(?:^|\n)Examples?:\n/);
  return { prose: prose.trim(), examples: examples.replaceAll(/^ {2}/gm, '').trim() };
}

function optionRow(option: Option): string {
  const choices = option.argChoices ? ` (${option.argChoices.map((choice) => `\`${choice}\``).join(', ')})` : '';
  const needed = option.mandatory ? ' Required.' : '';
  return `| \`${option.flags}\` | ${cell(sentence(option.description))}${choices}${needed} |`;
}

function argumentRow(argument: Argument): string {
  return `| \`${argument.name()}\` | ${cell(sentence(argument.description))} |`;
}

function usageOf(command: Command): string {
  const names: string[] = [];
  for (let one: Command | null = command; one; one = one.parent) names.unshift(one.name());
  return `${names.join(' ')} ${command.usage()}`.replace(' [options]', command.options.length > 0 ? ' [options]' : '');
}

function sectionOf(command: Command): string {
  const { prose, examples } = textAfter(command);
  const own = command.options.filter((option) => option.helpGroupHeading !== connectionGroup && !option.hidden);
  const described = command.registeredArguments.filter(({ description }) => description !== '');
  const isConnected = own.length < command.options.length;
  const rows = [...described.map(argumentRow), ...own.map(optionRow)];
  return [
    `### ${usageOf(command).replace(/ \[options\].*| [<[].*/, '')}\n`,
    `${sentence(command.description())}\n`,
    `\`\`\`text\n${usageOf(command)}\n\`\`\`\n`,
    ...(rows.length > 0 ? [`| argument or option | meaning |\n|---|---|\n${rows.join('\n')}\n`] : []),
    ...(isConnected ? ['And the [options of the connection](#the-service-and-the-credential).\n'] : []),
    ...(command.name() === 'serve'
      ? ['Its settings are [environment variables](environment.md).\n']
      : prose === ''
        ? []
        : [`${prose.replaceAll('<', '&lt;')}\n`]),
    ...(examples === '' ? [] : [`\`\`\`sh\n${examples}\n\`\`\`\n`]),
  ].join('\n');
}

/** A command and those below it, without the help that every group has. */
function sectionsOf(command: Command): string[] {
  if (command.commands.length === 0) return [sectionOf(command)];
  const { prose, examples } = textAfter(command);
  return [
    `## toolhost ${command.name()}\n`,
    `${sentence(command.description())}\n`,
    ...(prose === '' ? [] : [`${prose}\n`]),
    ...(examples === '' ? [] : [`\`\`\`sh\n${examples}\n\`\`\`\n`]),
    ...command.commands.map(sectionOf),
  ];
}

/** The reference page of the command line, from the declarations of its commands. */
export function commandPage(generated: string): string {
  const program = createProgram();
  const { examples } = textAfter(program);
  const connected = program.commands
    .flatMap(({ options }) => options)
    .filter(({ helpGroupHeading }) => helpGroupHeading === connectionGroup)
    .filter(({ flags }, index, all) => all.findIndex((other) => other.flags === flags) === index);
  const single = program.commands.filter(({ commands }) => commands.length === 0);
  const groups = program.commands.filter(({ commands }) => commands.length > 0);
  return [
    '# Command line',
    generated,
    'The commands of `toolhost`, as their `--help` shows them. The [guide](../command-line.md) explains logging in, profiles and scripts.\n',
    `\`\`\`sh\n${examples.split('\n\n')[0]}\n\`\`\`\n`,
    '## Exit codes\n',
    '0: done. 1: failed or refused. 2: not understood; of `apply`, `diff`, `import-again` and `versions diff`: something differs.\n',
    'With `--json` a failure is one JSON object on standard error: `{"error": {"kind", "message", "problems": [{"path", "message"}]}}`. `kind` is `usage`, an error of the service such as `notFound`, or `failed`.\n',
    '## The service and the credential\n',
    'Commands that talk to a running service share these options.\n',
    `| option | meaning |\n|---|---|\n${connected.map(optionRow).join('\n')}\n`,
    '## Commands\n',
    ...single.map(sectionOf),
    ...groups.flatMap(sectionsOf),
  ].join('\n');
}
