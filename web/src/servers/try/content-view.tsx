import { Image, Text } from '@mantine/core';
import type { ContentBlock } from '../../answers.ts';
import { CodeBlock } from '../../ui/code-block.tsx';
import { fileIn, fileText, textIn } from './file-in.ts';

/** JSON with line breaks; every digit of every number stays. */
function indented(text: string): string {
  if (text.length > 100_000 || !/^\s*[[{]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|\s+/g, (token, at: number) => {
    if (token.startsWith('"')) return token;
    if (/^\s/.test(token)) return '';
    if (token === ':') return ': ';
    const line = () => `\n${'  '.repeat(depth)}`;
    if (token === ',') return `,${line()}`;
    const isOpening = token === '{' || token === '[';
    if (isOpening && /^\s*[}\]]/.test(text.slice(at + 1, at + 50))) return token;
    if (isOpening) {
      depth++;
      return token + line();
    }
    if (/[{[]\s*$/.test(text.slice(Math.max(0, at - 50), at))) return token;
    depth--;
    return line() + token;
  });
}

/** One block of a result. */
export function ContentView({ block, isError }: { block: ContentBlock; isError: boolean }) {
  const file = fileIn(block);
  if (!file) return <CodeBlock code={indented(textIn(block))} label={isError ? 'error' : 'answer'} />;
  if (block.type === 'image' && /^image\/(png|jpeg|gif|webp)$/.test(file.type)) {
    return (
      <Image
        src={`data:${file.type};base64,${block.data}`}
        alt={`Image of the answer, ${file.type}`}
        maw={480}
        radius="md"
      />
    );
  }
  return <Text size="sm">A file ({fileText(file)}). Agents get it as it is; it is not shown here.</Text>;
}
