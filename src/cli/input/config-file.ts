import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { documentText } from '../../domain/document-text.ts';
import { parseJson } from '../../domain/json/json.ts';
import { yamlNumbers } from '../../domain/json/yaml-numbers.ts';
import { foreignText } from '../../domain/mistakes/foreign-document.ts';
import { AppError, messageOf } from '../../errors.ts';

/** The value that a JSON or YAML file holds, or the text of a document of another program; `-` is standard input. @throws AppError that names the file */
export async function readConfigFile(path: string): Promise<unknown> {
  const content = await readConfigText(path);
  // A command line may be valid YAML, too.
  if (foreignText(content) !== undefined) return content;
  // JSON is valid YAML too, but the JSON parser gives better messages.
  const isJson = path.endsWith('.json') || /^\s*\{/.test(content);
  try {
    return isJson ? parseJson(content) : (await import('yaml')).parse(content, yamlNumbers);
  } catch (error) {
    throw new AppError('invalid', `${path}: is not ${isJson ? 'JSON' : 'YAML'}: ${messageOf(error).split('\n', 1)[0]}`);
  }
}

/** The text of a file; `-` is standard input. @throws AppError that names the file */
export async function readConfigText(path: string): Promise<string> {
  const content = (await textOf(path)).replace(/^\u{feff}/u, '');
  if (content.trim() === '') throw new AppError('invalid', `${path}: is empty`);
  return content;
}

async function textOf(path: string): Promise<string> {
  if (path === '-') return text(process.stdin);
  return readTextFile(path);
}

/** @throws AppError that names the file */
export async function readTextFile(path: string): Promise<string> {
  try {
    return documentText(await readFile(path));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new AppError('notFound', `${path}: there is no such file`);
    if (code === 'EISDIR')
      throw new AppError(
        'invalid',
        `${path}: is a folder; name a file, or for check, apply, diff and dev a folder that has .json, .yaml or .yml files`,
      );
    throw new AppError('invalid', `${path}: cannot be read: ${messageOf(error)}`);
  }
}
