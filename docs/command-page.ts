import type { Argument, Command, Option } from 'commander';
import { connectionOptionsHeading } from '../apps/cli/src/options.ts';
import { createProgram } from '../apps/cli/src/program.ts';

/** Width of the help that the texts are extracted from. */
const helpWidth = 80;

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');
const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.:]$/.test(text) ? '' : '.'}`;

/** Returns the prose and the examples that a command adds to its help. */
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

function formatUsage(command: Command): string {
  const names: string[] = [];
  for (let ancestor: Command | null = command; ancestor; ancestor = ancestor.parent) names.unshift(ancestor.name());
  return `${names.join(' ')} ${command.usage()}`.replace(' [options]', command.options.length > 0 ? ' [options]' : '');
}

function formatSection(command: Command): string {
  const { prose, examples } = textAfter(command);
  const ownOptions = command.options.filter(
    (option) => option.helpGroupHeading !== connectionOptionsHeading && !option.hidden,
  );
  const described = command.registeredArguments.filter(({ description }) => description !== '');
  const isConnected = ownOptions.length < command.options.length;
  const rows = [...described.map(argumentRow), ...ownOptions.map(optionRow)];
  return [
    `### ${formatUsage(command).replace(/ \[options\].*| [<[].*/, '')}\n`,
    `${sentence(command.description())}\n`,
    `\`\`\`text\n${formatUsage(command)}\n\`\`\`\n`,
    ...(rows.length > 0 ? [`| argument or option | description |\n|---|---|\n${rows.join('\n')}\n`] : []),
    ...(isConnected ? ['See also the [connection options](#connection-options).\n'] : []),
    ...(command.name() === 'serve'
      ? ['Settings are [environment variables](environment.md).\n']
      : prose === ''
        ? []
        : [`${prose.replaceAll('<', '&lt;')}\n`]),
    ...(examples === '' ? [] : [`\`\`\`sh\n${examples}\n\`\`\`\n`]),
  ].join('\n');
}

/** Formats a command and its subcommands, without the `help` command of every group. */
function formatSections(command: Command): string[] {
  if (command.commands.length === 0) return [formatSection(command)];
  const { prose, examples } = textAfter(command);
  return [
    `## toolhost ${command.name()}\n`,
    `${sentence(command.description())}\n`,
    ...(prose === '' ? [] : [`${prose}\n`]),
    ...(examples === '' ? [] : [`\`\`\`sh\n${examples}\n\`\`\`\n`]),
    ...command.commands.map(formatSection),
  ];
}

/** Generates the command-line reference page from the declared commands. */
export function commandPage(generated: string): string {
  const program = createProgram();
  const { examples } = textAfter(program);
  const connected = program.commands
    .flatMap(({ options }) => options)
    .filter(({ helpGroupHeading }) => helpGroupHeading === connectionOptionsHeading)
    .filter(({ flags }, index, all) => all.findIndex((other) => other.flags === flags) === index);
  const single = program.commands.filter(({ commands }) => commands.length === 0);
  const groups = program.commands.filter(({ commands }) => commands.length > 0);
  return [
    '# Command line',
    generated,
    'The commands of `toolhost`, as their `--help` shows them. The [guide](../command-line.md) explains logins, profiles, and scripts.\n',
    `\`\`\`sh\n${examples.split('\n\n')[0]}\n\`\`\`\n`,
    '## Exit codes\n',
    '0: success. 1: failure. 2: usage error; for `apply`, `diff`, `reimport`, and `versions diff`: differences found.\n',
    'With `--json`, a failure is one JSON object on standard error: `{"error": {"kind", "message", "problems": [{"path", "message"}]}}`. `kind` is `usage`, an error of the service such as `notFound`, or `failed`.\n',
    '## Connection options\n',
    'Commands that connect to a running service share these options.\n',
    `| option | description |\n|---|---|\n${connected.map(optionRow).join('\n')}\n`,
    '## Commands\n',
    ...single.map(formatSection),
    ...groups.flatMap(formatSections),
  ].join('\n');
}
