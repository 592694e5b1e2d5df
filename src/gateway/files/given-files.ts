import { fileChunkBytes, GivenFile } from '../../domain/files/file-names.ts';
import { own } from '../../domain/http/values.ts';
import { refusedArgument } from '../../domain/request/pairs.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import type { FileRow } from '../../store/calls/files.ts';
import { callerDigest } from '../callers/caller.ts';
import type { AttachParts } from './attach-files.ts';
import type { FileOwner } from './kept-files.ts';

/** Maximum total size in bytes, and maximum number, of the files that one call may pass by URL. */
export const mostGiven = { bytes: 10 * 1024 * 1024, files: 100 };

const unknownFile =
  'there is no file for you at this URL; a file URL works for ten minutes, in one workspace, for the caller that received it; call the tool that returned it again, or pass Base64';

/** Reads the file of a URL, for the argument with this name. @throws ToolFailure invalid_arguments */
type ReadFile = (id: string, name: string) => Promise<GivenFile>;

/** A call whose arguments may refer to files. */
type TakingCall = FileOwner & {
  tool: { fileArguments: readonly string[] };
  args: Arguments | undefined;
};

/** Replaces file URLs in the arguments of a call with the caller's files. @throws ToolFailure invalid_arguments */
export async function takeGivenFiles(call: TakingCall, args: Arguments, parts: AttachParts): Promise<Arguments> {
  const { idIn } = parts.fileAddresses;
  call.args = await withGivenFiles(call.tool.fileArguments, args, idIn, readOwnFiles(call, parts));
  return call.args;
}

/**
 * Replaces file URLs in arguments with the files themselves. `names` lists the arguments that take a file. The files
 * are read from the store; nothing is sent.
 * @throws ToolFailure invalid_arguments
 */
export async function withGivenFiles(
  names: readonly string[],
  args: Arguments,
  idIn: (text: string) => string | undefined,
  read: ReadFile,
): Promise<Arguments> {
  let replaced: Arguments | undefined;
  for (const name of names) {
    const value = own(args, name);
    const list = Array.isArray(value) ? value : [value];
    const ids = list.map((one) => (typeof one === 'string' ? idIn(one) : undefined));
    const count = ids.filter((id) => id !== undefined).length;
    if (count === 0) continue;
    if (count > mostGiven.files)
      throw refusedArgument({ name }, `found ${count} files; allowed: at most ${mostGiven.files}`);
    const files: unknown[] = [];
    for (const [index, id] of ids.entries()) files.push(id === undefined ? list[index] : await read(id, name));
    replaced = { ...(replaced ?? args), [name]: Array.isArray(value) ? files : files[0] };
  }
  return replaced ?? args;
}

/** Reads files that were issued to the caller itself. */
function readOwnFiles({ server, caller }: FileOwner, { files }: AttachParts): ReadFile {
  const digest = callerDigest(caller);
  const take = sizeLimit();
  return async (id, name) => {
    const file = await files.find(id);
    if (file?.workspaceId !== server.workspaceId || file.caller !== digest) throw missing(name, files);
    take(file, name);
    const bytes = await readWhole(file, name, files);
    files.count('uploaded');
    return new GivenFile(file.head, bytes);
  };
}

/** Describes the files of a workspace for a preview, which shows their names and sizes but no bytes. */
export function readSizes(workspaceId: string, { files }: AttachParts): ReadFile {
  const take = sizeLimit();
  return async (id, name) => {
    const file = await files.find(id);
    if (file?.workspaceId !== workspaceId) throw missing(name, files);
    take(file, name);
    return new GivenFile(file.head, Buffer.alloc(file.bytes));
  };
}

/** Counts the bytes of the files of one call. The returned function throws ToolFailure for a file beyond the limit. */
function sizeLimit(): (file: FileRow, name: string) => void {
  let left = mostGiven.bytes;
  return ({ bytes }, name) => {
    left -= bytes;
    if (left >= 0) return;
    throw refusedArgument({ name }, `the files of this call have more than ${mostGiven.bytes} bytes in total`);
  };
}

/** Reads the bytes of a file, chunk by chunk. @throws ToolFailure */
async function readWhole(file: FileRow, name: string, files: AttachParts['files']): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(file.bytes);
  for (let at = 0; at < file.bytes; at += fileChunkBytes) {
    const chunk = await files.chunk(file, at / fileChunkBytes);
    if (!chunk) throw missing(name, files);
    chunk.copy(whole, at);
    await nextTurn();
  }
  return whole;
}

function missing(name: string, files: AttachParts['files']) {
  files.count('missing');
  return refusedArgument({ name }, unknownFile);
}
