import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { AppError, type Problem } from '../../errors.ts';
import { readConfigFile } from '../config-file.ts';
import { environmentUrl, jsonOption } from '../connection.ts';
import { print, printJson } from '../print.ts';

type Verdict = { file: string; valid: boolean; problems: readonly Problem[]; warnings: readonly Problem[] };

export function addCheck(program: Command): void {
  program
    .command('check')
    .description('judge configuration files without a service; exits with 1 when one has a problem, warnings are fine')
    .argument('<file...>', 'JSON or YAML, or a folder of such files; - reads standard input')
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
    .action(check);
}

async function check(files: readonly string[], options: { json?: true }): Promise<void> {
  const judge = await createJudge(process.env);
  const verdicts: Verdict[] = [];
  for (const file of files.flatMap(filesOf)) verdicts.push({ file, ...(await verdictOf(file, judge)) });
  const valid = verdicts.every((verdict) => verdict.valid);
  if (options.json) printJson({ valid, files: verdicts });
  else print(verdicts.flatMap(linesOf).join('\n'));
  if (!valid) process.exitCode = 1;
}

/** The configuration files of a folder, sorted by name. A file or an empty folder is returned as given. */
function filesOf(path: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
  const found = readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(json|ya?ml)$/.test(entry.name))
    .map(({ name }) => join(path, name))
    .toSorted();
  return found.length > 0 ? found : [path];
}

type Judge = (config: unknown) => Omit<Verdict, 'file'>;

/** Checks configurations by the rules of the service that this environment would start. */
async function createJudge(env: NodeJS.ProcessEnv): Promise<Judge> {
  const [{ configRules }, { checkServerConfig }, { warningsOf }, { tooManyTools }] = await Promise.all([
    import('../../app/operator.ts'),
    import('../../domain/config/server-config.ts'),
    import('../../domain/warnings/warnings.ts'),
    import('../../operations/quotas/quota-rules.ts'),
  ]);
  const { rules, quotas } = configRules(env, environmentUrl(env));
  return (raw) => {
    const { config: checked, problems } = checkServerConfig(raw, rules);
    const excess = checked && tooManyTools(checked.tools.length, quotas);
    if (excess !== undefined) return { valid: false, problems: [{ path: 'tools', message: excess }], warnings: [] };
    return { valid: checked !== undefined, problems, warnings: checked ? warningsOf(checked, new Set()) : [] };
  };
}

async function verdictOf(file: string, judge: Judge): Promise<Omit<Verdict, 'file'>> {
  try {
    return judge(await readConfigFile(file));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { valid: false, problems: [{ path: '', message: error.message.replace(`${file}: `, '') }], warnings: [] };
  }
}

function linesOf({ file, valid, problems, warnings }: Verdict): string[] {
  const at = (path: string) => (path === '' ? file : `${file}: ${path}`);
  return [
    ...problems.map(({ path, message }) => `${at(path)}: ${message}`),
    ...warnings.map(({ path, message }) => `${at(path)}: warning: ${message}`),
    ...(valid ? [`${file}: ok${warnings.length > 0 ? `, with warnings (${warnings.length})` : ''}`] : []),
  ];
}
