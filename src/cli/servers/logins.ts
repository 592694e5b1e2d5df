import type { Command } from 'commander';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import { readList } from '../connection/pages.ts';
import { print, printJson, table } from '../print/print.ts';

type Options = ConnectionOptions & { json?: true };

export function addLogins(program: Command): void {
  const logins = program
    .command('logins')
    .description('list and end the logins of people at the servers, and those of this command line');
  addConnectionOptions(logins.command('list'))
    .description('list the logins, newest first')
    .option('--server <slug>', 'only those at this server')
    .addHelpText('after', '\nExamples:\n  toolhost logins list\n  toolhost logins list --server projects')
    .action(list);
  addConnectionOptions(logins.command('end'))
    .description('end a login at once: its program has to ask the person again')
    .argument('<id>', 'id of the login, grt_…')
    .addHelpText('after', '\nExample:\n  toolhost logins end grt_…')
    .action(end);
}

async function list({ server, json, ...options }: Options & { server?: string }): Promise<void> {
  const client = await connect(options, process.env);
  const grants = await readList(async (wanted, allowance) => {
    const page = await client.run(
      'listGrants',
      { ...wanted, ...(server !== undefined && { slug: server }) },
      allowance,
    );
    return { entries: page.grants, next: page.next_cursor };
  });
  if (json) return printJson({ grants });
  if (grants.length === 0) return print('There are no logins.');
  const rows = grants.map((one) => [
    one.id,
    one.server,
    one.client,
    one.scope,
    one.status,
    one.created_at,
    one.last_used_at ?? 'never',
  ]);
  print(table(['ID', 'SERVER', 'PROGRAM', 'SCOPE', 'STATUS', 'SINCE', 'LAST USED'], rows));
}

async function end(id: string, { json, ...options }: Options): Promise<void> {
  const client = await connect(options, process.env);
  const ended = await client.run('revokeGrant', { id });
  if (json) printJson(ended);
  else print(`The login ${id} has ended.`);
}
