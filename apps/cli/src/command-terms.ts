import { AppError } from '@toolhost/errors/errors';
import { programName } from '@toolhost/server/command-line';

/**
 * Texts of the service also address agents and API clients. This module rewrites them for the command line, because a
 * person who runs a command knows neither the operations nor the REST API.
 */

/** Commands of the operations that texts name. */
const commands: { readonly [operation: string]: string } = {
  addImport: 'import FILE --into SLUG --prefix PREFIX',
  addTool: 'tools add',
  callTool: 'call',
  createMcpServer: 'servers create',
  deleteMcpServer: 'servers delete',
  getMcpServer: 'servers get',
  importApi: 'import',
  listMcpServers: 'servers list',
  previewToolCall: 'preview',
  reimportApi: 'reimport',
  removeTool: 'tools remove',
  restoreMcpServer: 'servers restore',
  restoreVersion: 'versions restore',
  setSecret: 'secrets set',
  updateMcpServer: 'servers update',
  updateTool: 'tools update',
};

const operationNames = Object.keys(commands).join('|');
const restRoute = '(?:GET|POST|PUT|PATCH|DELETE) /api/\\S+?';

/** Replacements, in order. The first ones remove the names of operations and routes next to a command. */
const replacements: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/there is no such grant/g, 'there is no such login'],
  [/the operation importApi or the command import FILE/g, `"${programName} import FILE"`],
  [
    /use mode plan to list the tags and, with report "all", the operations/g,
    'list the tags with --plan, and the operations with --list all',
  ],
  [
    new RegExp(
      `(?:${operationNames}|${restRoute}) \\((?:${restRoute}, )?(?:(?:bin/|npx )?toolhost )?([a-z][^()]*)\\)`,
      'g',
    ),
    `"${programName} $1"`,
  ],
  [new RegExp(`(?:tool )?(?:${operationNames})(?: with mode "\\w+"| shows the changes)?, or: `, 'g'), ''],
];

/** Rewrites a text of the service with the terms of the command line. */
export function toCommandTerms(text: string): string {
  const rewritten = replacements.reduce(
    (current, [pattern, replacement]) => current.replace(pattern, replacement),
    text,
  );
  return rewritten.replace(
    new RegExp(`\\b(?:${operationNames})\\b`, 'g'),
    (operation) => `"${programName} ${commands[operation]}"`,
  );
}

/** Argument or option of each field of an operation, such as `--name` for `name`. */
export type FieldLabels = { readonly [field: string]: string };

/**
 * Runs an operation. If it fails, names the arguments and options of the command in place of the operation's fields.
 * @throws AppError
 */
export async function withFieldLabels<Result>(names: FieldLabels, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof AppError) || error.problems.length === 0) throw error;
    const problems = error.problems.map(({ path, message }) => nameArgument(path, message, names));
    throw new AppError(error.kind, removeProblemList(error), { problems, cause: error });
  }
}

/** Returns the message of an error without the list of problems at its end. */
export function removeProblemList({ message, problems }: AppError): string {
  const list = problems.map(({ path, message: problem }) => (path ? `${path}: ${problem}` : problem)).join('; ');
  return list !== '' && message.endsWith(list) ? message.slice(0, -list.length).replace(/:\s*$/, '') : message;
}

/** Converts a path such as `answers.region` or `servers[0]` to the option that sets it. */
function nameArgument(path: string, message: string, names: FieldLabels): { path: string; message: string } {
  if (path === 'answers.server' && message.startsWith('required: ')) {
    // The document has an address that this service may not call.
    const [, refusal] = /^required: (.* cannot be called: .*)\. What is /s.exec(message) ?? [];
    const addServer = '--server https://api.example.com';
    if (refusal === undefined) return { path: '', message: `The document has no server URL. Add ${addServer}` };
    return { path: '', message: `${refusal}. Start the service with that setting, or add ${addServer}` };
  }
  const [, field = '', rest = ''] = /^(\w+)(.*)$/s.exec(path) ?? [];
  const name = Object.hasOwn(names, field) ? names[field] : undefined;
  if (name === undefined) return { path, message };
  const entry = rest.startsWith('.') ? ` ${rest.slice(1)}=…` : '';
  return { path: name + entry, message: message.replace(/^required: /, '') };
}
