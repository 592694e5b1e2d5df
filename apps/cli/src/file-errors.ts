import { AppError, getErrorMessage } from '@toolhost/errors/errors';

const fileErrors: { readonly [code: string]: string } = {
  EACCES: 'this user has no permission. Use another path, or change the permissions',
  EEXIST: 'it exists and is not a folder. Name another folder',
  EISDIR: 'it is a folder. Name a file in it',
  ENOENT: 'its folder does not exist. Create the folder first',
  ENOSPC: 'the disk is full. Free some space',
  ENOTDIR: 'a part of the path is a file. Check the path',
  EPERM: 'this user has no permission. Use another path, or change the permissions',
  EROFS: 'the file system is read-only. Use another path',
};

/** Explains an error of the file system and says what to do. */
export function explainFileError(error: unknown): string {
  return fileErrors[String((error as NodeJS.ErrnoException).code)] ?? getErrorMessage(error);
}

/** Creates the error for a file that cannot be parsed. The text of the parser is replaced by the location. */
export function createSyntaxError(file: string, format: 'JSON' | 'YAML', error: unknown): AppError {
  const [message = ''] = getErrorMessage(error).split('\n', 1);
  if (message.includes('circular'))
    return new AppError('invalid', `${file}: has a YAML anchor that contains itself. Write the values out instead`);
  const [ownText] = /\S+ is not a JSON number; write a number, or quote the text/.exec(message) ?? [];
  const [, line, column] = /line (\d+),? column (\d+)/.exec(message) ?? [];
  const location = line === undefined ? '' : ` at line ${line}, column ${column}`;
  if (ownText !== undefined) return new AppError('invalid', `${file}: ${ownText}${location}`);
  const hint = format === 'JSON' ? 'the commas, quotes, and brackets' : 'the indentation, colons, quotes, and brackets';
  return new AppError('invalid', `${file}: is not ${format}: syntax error${location}. Check ${hint} there`);
}
