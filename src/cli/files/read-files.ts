import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from '../../domain/json/json.ts';
import { yamlNumbers } from '../../domain/json/yaml-numbers.ts';
import { foreignText } from '../../domain/mistakes/foreign-document.ts';
import { AppError, messageOf } from '../../errors.ts';
import { readConfigText } from '../input/config-file.ts';

/** A document of a file; `at` names it for people, with its number where the file has several. */
export type FileDocument = { file: string; at: string; index: number; value: unknown };
export type FileProblem = { at: string; path: string; message: string };

/** The configuration files of a folder, sorted by name. A file or an empty folder is returned as given. */
export function filesOf(path: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
  const found = filesInFolder(path);
  return found.length > 0 ? found : [path];
}

/** The configuration files directly in a folder, sorted by name. */
export function filesInFolder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && /^[^.].*\.(json|ya?ml)$/.test(entry.name))
    .map(({ name }) => join(folder, name))
    .toSorted();
}

/** Reads every document of a file: of YAML those between `---`, of JSON the object or the objects of a list. */
export async function readDocuments(file: string): Promise<{ documents: FileDocument[]; problems: FileProblem[] }> {
  try {
    const values = await valuesOf(file, await readConfigText(file));
    const at = (index: number) => (values.length > 1 ? `${file} (document ${index + 1})` : file);
    return { documents: values.map((value, index) => ({ file, at: at(index), index, value })), problems: [] };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { documents: [], problems: [{ at: file, path: '', message: error.message.replace(`${file}: `, '') }] };
  }
}

async function valuesOf(file: string, text: string): Promise<unknown[]> {
  // A command line may be valid YAML, too.
  if (foreignText(text) !== undefined) return [text];
  // JSON is valid YAML too, but the JSON parser gives better messages.
  if (isJsonText(file, text)) {
    const value = parsed(file, 'JSON', () => parseJson(text));
    return Array.isArray(value) ? value : [value];
  }
  const { parseAllDocuments } = await import('yaml');
  const documents = parseAllDocuments(text, yamlNumbers);
  return parsed(file, 'YAML', () =>
    [...documents].map((document) => {
      if (document.errors[0]) throw document.errors[0];
      const value = document.toJS() as unknown;
      // An anchor may contain itself; then this throws.
      JSON.stringify(value);
      return value;
    }),
  ).filter((value) => value !== null);
}

/** Whether a file holds JSON rather than YAML. */
export function isJsonText(file: string, text: string): boolean {
  return file.endsWith('.json') || /^\s*[{[]/.test(text);
}

function parsed<T>(file: string, format: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new AppError('invalid', `${file}: is not ${format}: ${messageOf(error).split('\n', 1)[0]}`);
  }
}
