import { routes } from '@toolhost/server/command-line';
import { allowSchemaField, createFileJsonSchema } from '@toolhost/tool-config/server-file';
import type { Command } from 'commander';
import { getServiceUrl } from '../connection/connect.ts';
import {
  addConnectionOptions,
  createJsonOption,
  envOption,
  exitWithOneOnUsageError,
  type JsonOption,
  parseIntegerUpTo,
} from '../options.ts';
import { print } from '../print.ts';
import type { ApplyOptions, DiffOptions } from './apply.ts';
import type { DevOptions } from './dev.ts';
import type { ExportCommandOptions } from './export.ts';

export function addCheck(program: Command): void {
  program
    .command('check')
    .description('check configuration files without a service; exits with 1 on a problem, but not on warnings')
    .argument(
      '<file...>',
      'JSON or YAML file with one or more servers, or a folder of such files; - reads standard input',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
A folder stands for the .json, .yaml, and .yml files directly in it.

EGRESS_ALLOW, MANAGEMENT_SLUG, and QUOTAS apply as they do to the service, and so do the hosts that "import --serve"
allowed, which DATA_DIR contains.

Examples:
  toolhost check servers
  toolhost check servers/*.yaml
  EGRESS_ALLOW=127.0.0.1:9000 toolhost check server.json`,
    )
    .action(async (paths: string[], options: JsonOption) => (await import('./check.ts')).checkFiles(paths, options));
}

export function addApply(program: Command): void {
  exitWithOneOnUsageError(addConnectionOptions(program.command('apply')))
    .description('make the hosted servers match files: creates and changes only what differs')
    .argument('<file...>', 'JSON or YAML file with one or more servers, or a folder of such files')
    .option('--dry-run', 'print what would be done, and change nothing')
    .option('--label <name>', 'label of the set of files that the servers belong to; stored with them')
    .option('--prune', 'delete servers with the label that no file describes any more')
    .option('--yes', 'delete without confirmation')
    .option(...envOption)
    .option('--secrets <file>', 'JSON or YAML file with sources of secrets by slug, in addition to those in the files')
    .option('--overwrite', 'undo changes made elsewhere, and take over servers from another label')
    .addHelpText(
      'after',
      `
All files are checked first. If any of them has a problem, nothing is changed. Secret values come from the variables
that --env names or from files below the folder, as the section "secrets" says. They never come from a configuration
and are never printed. --dry-run lists each source and the hosts that its value may reach.

Exit codes: 0 success or nothing to do, 1 a problem or a failure, 2 with --dry-run: something would change.

Examples:
  toolhost apply servers
  toolhost apply servers --dry-run --env WEATHER_KEY
  toolhost apply servers --label team-a --prune --yes`,
    )
    .action(async (paths: string[], options: ApplyOptions) => (await import('./apply.ts')).applyFiles(paths, options));
}

export function addDiff(program: Command): void {
  exitWithOneOnUsageError(addConnectionOptions(program.command('diff')))
    .description('compare files with the hosted servers, field by field; secret values are not shown')
    .argument('<file...>', 'JSON or YAML file with one or more servers, or a folder of such files')
    .option('--label <name>', 'also list the servers with this label that no file describes')
    .option(...envOption)
    .option('--secrets <file>', 'JSON or YAML file with sources of secrets by slug, in addition to those in the files')
    .addHelpText(
      'after',
      `
A secret whose value is not available, or that the key may not compare, is listed as not compared.

Exit codes: 0 no differences, 1 a problem, 2 differences.

Examples:
  toolhost diff servers
  toolhost diff servers/weather.yaml`,
    )
    .action(async (paths: string[], options: DiffOptions) => (await import('./apply.ts')).diffFiles(paths, options));
}

export function addExport(program: Command): void {
  addConnectionOptions(program.command('export'))
    .description('write hosted servers as files for apply; secrets by name only')
    .argument('[slug...]', 'servers (default: all)')
    .option(
      '--out <folder>',
      'folder to write to: updates the file that has the slug and keeps its comments, or creates SLUG.yaml',
    )
    .option('--label <name>', 'only servers with this label')
    .option('--schema <address>', "URL of the JSON Schema in the header of new files (default: the service's)")
    .addHelpText(
      'after',
      `
Without --out, the YAML is printed. Applying exported files changes nothing.

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
    .description('print the JSON Schema of server files, for editors')
    .addHelpText(
      'after',
      `
A running service serves it at ${routes.serverFileSchema}. In YAML, the first line of a file names it:
  # yaml-language-server: $schema=./server.schema.json

Example:
  toolhost schema > server.schema.json`,
    )
    .action(() => {
      const schema = allowSchemaField(createFileJsonSchema(getServiceUrl() + routes.serverFileSchema));
      print(JSON.stringify(schema, undefined, 2));
    });
}

export function addDev(program: Command): void {
  program
    .command('dev')
    .description('serve files on this machine and follow their changes; stored data is discarded at the end')
    .argument('<file...>', 'JSON or YAML file with one or more servers, or a folder of such files')
    .option('--port <number>', 'port on 127.0.0.1 (default: PORT or 8080)', parseIntegerUpTo(65_535))
    .option(...envOption)
    .addHelpText(
      'after',
      `
If a file has a problem, the problem is printed and its servers stay unchanged. A server whose file was deleted is
removed. Secret values come from the variables that --env names or from files below the folder, as the section "secrets"
says.

Examples:
  toolhost dev servers
  EGRESS_ALLOW=127.0.0.1:9000 toolhost dev server.yaml`,
    )
    .action(async (paths: string[], options: DevOptions) => (await import('./dev.ts')).runDev(paths, options));
}
