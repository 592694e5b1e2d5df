import type { Command } from 'commander';
import { serverFileJsonSchema } from '../../operations/applying/server-file.ts';
import { schemaForFiles } from '../../operations/describe.ts';
import { routes } from '../../routes.ts';
import { environmentUrl } from '../connection/connect.ts';
import {
  addConnectionOptions,
  type JsonOption,
  jsonOption,
  refusesUsage,
  variableOption,
  wholeUpTo,
} from '../options.ts';
import { print } from '../print.ts';
import type { ApplyOptions, DiffOptions } from './apply.ts';
import type { DevOptions } from './dev.ts';
import type { ExportCommandOptions } from './export.ts';

export function addCheck(program: Command): void {
  program
    .command('check')
    .description('check configuration files without a service; exits with 1 when one has a problem, warnings are fine')
    .argument(
      '<file...>',
      'JSON or YAML, with one or several servers, or a folder of such files; - reads standard input',
    )
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Of a folder the files directly in it count whose names end in .json, .yaml or .yml.

EGRESS_ALLOW, MANAGEMENT_SLUG and QUOTAS count as they do for the service.

Examples:
  toolhost check servers
  toolhost check servers/*.yaml
  EGRESS_ALLOW=127.0.0.1:9000 toolhost check server.json`,
    )
    .action(async (paths: string[], options: JsonOption) => (await import('./check.ts')).check(paths, options));
}

export function addApply(program: Command): void {
  refusesUsage(addConnectionOptions(program.command('apply')))
    .description('make the hosted servers match files: creates and changes what differs, and nothing else')
    .argument('<file...>', 'JSON or YAML, each with one or several servers, or a folder of such files')
    .option('--dry-run', 'say what would be done, and change nothing')
    .option('--label <name>', 'set of files that the servers belong to; it is stored with them')
    .option('--prune', 'delete servers with the label that no file describes any more')
    .option('--yes', 'delete without asking')
    .option(...variableOption)
    .option('--secrets <file>', 'JSON or YAML with sources of secrets by slug, beside those in the files')
    .option('--overwrite', 'undo changes that were made elsewhere, and take servers from another label')
    .addHelpText(
      'after',
      `
Every file is checked first; with a problem in any of them nothing is changed.
Values of secrets come from the variables that --env names, or from files below the folder, as the section "secrets"
says, never from a configuration, and are never printed. --dry-run lists each source and the hosts that its value may
reach.

Exit codes: 0 done or nothing to do, 1 a problem or a failure, 2 with --dry-run: something would change.

Examples:
  toolhost apply servers
  toolhost apply servers --dry-run --env WEATHER_KEY
  toolhost apply servers --label team-a --prune --yes`,
    )
    .action(async (paths: string[], options: ApplyOptions) => (await import('./apply.ts')).apply(paths, options));
}

export function addDiff(program: Command): void {
  refusesUsage(addConnectionOptions(program.command('diff')))
    .description('compare files with the hosted servers, field by field; values of secrets are not shown')
    .argument('<file...>', 'JSON or YAML, each with one or several servers, or a folder of such files')
    .option('--label <name>', 'also name the servers with this label that no file describes')
    .option(...variableOption)
    .option('--secrets <file>', 'JSON or YAML with sources of secrets by slug, beside those in the files')
    .addHelpText(
      'after',
      `
A secret whose value is not at hand, or which the key may not compare, is named and left out.

Exit codes: 0 the same, 1 a problem, 2 different.

Examples:
  toolhost diff servers
  toolhost diff servers/weather.yaml`,
    )
    .action(async (paths: string[], options: DiffOptions) => (await import('./apply.ts')).diff(paths, options));
}

export function addExport(program: Command): void {
  addConnectionOptions(program.command('export'))
    .description('write hosted servers as files that apply takes; of secrets only the names')
    .argument('[slug...]', 'servers (default: all)')
    .option('--out <folder>', 'write there: into the file that has the slug, with its comments, or to SLUG.yaml')
    .option('--label <name>', 'only servers with this label')
    .option('--schema <address>', 'JSON Schema that the header of new files names (default: that of the service)')
    .addHelpText(
      'after',
      `
Without --out the YAML is printed. Applying what was exported changes nothing.

Examples:
  toolhost export weather > weather.yaml
  toolhost export --out servers`,
    )
    .action(async (slugs: string[], options: ExportCommandOptions) =>
      (await import('./export.ts')).exportServers(slugs, options),
    );
}

export function addSchema(program: Command): void {
  program
    .command('schema')
    .description('print the JSON Schema of the files of servers, for editors')
    .addHelpText(
      'after',
      `
A running service serves it at ${routes.serverFileSchema}. In YAML the first line of a file names it:
  # yaml-language-server: $schema=./server.schema.json

Example:
  toolhost schema > server.schema.json`,
    )
    .action(() => {
      const schema = schemaForFiles(serverFileJsonSchema(environmentUrl() + routes.serverFileSchema));
      print(JSON.stringify(schema, undefined, 2));
    });
}

export function addDev(program: Command): void {
  program
    .command('dev')
    .description('serve files on this machine and follow their changes; what is stored ends with the command')
    .argument('<file...>', 'JSON or YAML, each with one or several servers, or a folder of such files')
    .option('--port <number>', 'port on 127.0.0.1 (default: PORT or 8080)', wholeUpTo(65_535))
    .option(...variableOption)
    .addHelpText(
      'after',
      `
A file with a problem keeps its servers as they were, and the problem is printed. A server whose file is gone is
removed. Values of secrets come from the variables that --env names, or from files of the folder, as the section
"secrets" says.

Examples:
  toolhost dev servers
  EGRESS_ALLOW=127.0.0.1:9000 toolhost dev server.yaml`,
    )
    .action(async (paths: string[], options: DevOptions) => (await import('./dev.ts')).dev(paths, options));
}
