import type { Command } from 'commander';
import { routes } from '../../routes.ts';
import { environmentUrl } from '../connection/environment-url.ts';
import { print } from '../print/print.ts';

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
    .action(async () => {
      const { serverFileJsonSchema } = await import('../../operations/applying/file-schema.ts');
      const schema = serverFileJsonSchema(environmentUrl(process.env) + routes.serverFileSchema);
      print(JSON.stringify(schema, undefined, 2));
    });
}
