import type { Command } from 'commander';
import { routes } from '../../routes.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import { note, print, printJson } from '../print/print.ts';

type Options = ConnectionOptions & { json?: true; out?: string; label?: string; schema?: string };

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
    .action(run);
}

async function run(slugs: readonly string[], options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const [{ documentOf }, { listedServers }, files] = await Promise.all([
    import('../files/server-document.ts'),
    import('../connection/pages.ts'),
    import('../files/export-files.ts'),
  ]);
  const wanted = slugs.length > 0 && options.label === undefined ? slugs : await chosen();
  const documents = [];
  for (const slug of new Set(wanted)) documents.push(await documentOf(client, slug));
  const schema = options.schema ?? client.url + routes.serverFileSchema;
  if (options.out === undefined) {
    if (options.json) printJson(documents);
    else if (documents.length > 0)
      print(
        documents
          .map((document) => files.yamlText(document, schema))
          .join('---\n')
          .trimEnd(),
      );
    return;
  }
  const exported = await files.exportTo(options.out, documents, schema);
  if (options.json) printJson({ files: exported });
  else for (const { slug, file, result } of exported) note(`${result.padEnd(7)}  ${slug}  ${file}`);

  async function chosen(): Promise<string[]> {
    const all = await listedServers(client);
    return all
      .filter(({ label }) => options.label === undefined || label === options.label)
      .map(({ slug }) => slug)
      .filter((slug) => slugs.length === 0 || slugs.includes(slug))
      .toSorted();
  }
}
