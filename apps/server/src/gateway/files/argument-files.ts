import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { fileChunkBytes, UploadedFile } from '@toolhost/tool-config/file-names';
import { getArgument } from '@toolhost/tool-config/http/values';
import { createArgumentFailure } from '@toolhost/tool-config/request/parameter-list';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import type { FileRow } from '../../store/calls/files.ts';
import { toCallerDigest } from '../callers/caller.ts';
import type { FileDeps } from './attach-files.ts';
import type { FileOwner } from './stored-files.ts';

/** Maximum total size in bytes, and maximum number, of the files that one call may pass by URL. */
export const maxPassedFiles = { bytes: 10 * 1024 * 1024, files: 100 };

const unknownFileMessage =
  'there is no file for you at this URL; a file URL works for ten minutes, in one workspace, for the caller that received it; call the tool that returned it again, or pass Base64';

/** Reads the file of a URL, for the argument with this name. @throws ToolFailure invalid_arguments */
type ReadFile = (id: string, name: string) => Promise<UploadedFile>;

/** A call whose arguments may refer to files. */
type CallWithFileArguments = FileOwner & { tool: { fileArguments: readonly string[] } };

/** Returns the arguments of a call with the caller's files in place of their URLs. @throws ToolFailure invalid_arguments */
export function resolveFileArguments(call: CallWithFileArguments, args: Arguments, deps: FileDeps): Promise<Arguments> {
  const { findId } = deps.fileUrls;
  return replaceFileUrls(call.tool.fileArguments, args, findId, createCallerFileReader(call, deps));
}

/**
 * Replaces file URLs in arguments with the files themselves. `names` lists the arguments that take a file. The files
 * are read from the store; nothing is sent.
 * @throws ToolFailure invalid_arguments
 */
export async function replaceFileUrls(
  names: readonly string[],
  args: Arguments,
  findId: (text: string) => string | undefined,
  read: ReadFile,
): Promise<Arguments> {
  let replaced: Arguments | undefined;
  for (const name of names) {
    const value = getArgument(args, name);
    const list = Array.isArray(value) ? value : [value];
    const ids = list.map((item) => (typeof item === 'string' ? findId(item) : undefined));
    const count = ids.filter((id) => id !== undefined).length;
    if (count === 0) continue;
    if (count > maxPassedFiles.files)
      throw createArgumentFailure({ name }, `found ${count} files; allowed: at most ${maxPassedFiles.files}`);
    const files: unknown[] = [];
    for (const [index, id] of ids.entries()) files.push(id === undefined ? list[index] : await read(id, name));
    replaced = { ...(replaced ?? args), [name]: Array.isArray(value) ? files : files[0] };
  }
  return replaced ?? args;
}

/** Reads files that were issued to the caller itself. */
function createCallerFileReader({ server, caller }: FileOwner, { files }: FileDeps): ReadFile {
  const digest = toCallerDigest(caller);
  const chargeSize = createSizeLimit();
  return async (id, name) => {
    const file = await files.find(id);
    if (file?.workspaceId !== server.workspaceId || file.caller !== digest) throw createMissingError(name, files);
    chargeSize(file, name);
    const bytes = await readAllChunks(file, name, files);
    files.count('uploaded');
    return new UploadedFile(file.head, bytes);
  };
}

/** Reads only the names and sizes of a workspace's files, for a preview, which shows no contents. */
export function createSizeReader(workspaceId: string, { files }: FileDeps): ReadFile {
  const chargeSize = createSizeLimit();
  return async (id, name) => {
    const file = await files.find(id);
    if (file?.workspaceId !== workspaceId) throw createMissingError(name, files);
    chargeSize(file, name);
    return new UploadedFile(file.head, Buffer.alloc(file.bytes));
  };
}

/** Counts the bytes of the files of one call. The returned function throws ToolFailure for a file beyond the limit. */
function createSizeLimit(): (file: FileRow, name: string) => void {
  let remainingBytes = maxPassedFiles.bytes;
  return ({ bytes }, name) => {
    remainingBytes -= bytes;
    if (remainingBytes >= 0) return;
    throw createArgumentFailure(
      { name },
      `the files of this call have more than ${maxPassedFiles.bytes} bytes in total`,
    );
  };
}

/** Reads the bytes of a file, chunk by chunk. @throws ToolFailure */
async function readAllChunks(file: FileRow, name: string, files: FileDeps['files']): Promise<Buffer> {
  const content = Buffer.allocUnsafe(file.bytes);
  for (let offset = 0; offset < file.bytes; offset += fileChunkBytes) {
    const chunk = await files.findChunk(file, offset / fileChunkBytes);
    if (!chunk) throw createMissingError(name, files);
    chunk.copy(content, offset);
    await yieldToEventLoop();
  }
  return content;
}

function createMissingError(name: string, files: FileDeps['files']) {
  files.count('missing');
  return createArgumentFailure({ name }, unknownFileMessage);
}
