import { Textarea } from '@mantine/core';
import { useState } from 'react';
import { parseJson } from '../../../exact-json.ts';
import { usePress } from '../../../ui/actions/press.ts';
import { visible, visibleJson } from '../../../ui/text/visible.ts';
import type { PathPart } from '../../config.ts';
import { errorText, Warnings } from '../field-messages.tsx';
import { useBlock, useField } from '../model/editor-context.ts';

type Props = { path: readonly PathPart[]; label: string; text?: string; minRows?: number };

/** A part of the configuration as JSON. Text that does not parse yet stays in the field. */
export function JsonField({ path, label, text, minRows = 3 }: Props) {
  const field = useField(path, true);
  const { beforeClick } = usePress();
  const [draft, setDraft] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const change = (next: string) => {
    setDraft(next);
    try {
      field.set(next.trim() === '' ? undefined : parseJson(next));
      setProblem(undefined);
    } catch (error) {
      setProblem(`not JSON yet: ${error instanceof Error ? visible(error.message) : ''}`);
    }
  };
  useBlock(path, problem);
  const leave = () => {
    field.touch();
    beforeClick(() => !problem && setDraft(undefined));
  };
  return (
    <div>
      <Textarea
        id={field.id}
        label={label}
        description={text}
        className="th-mono"
        autosize
        minRows={minRows}
        maxRows={18}
        spellCheck={false}
        value={draft ?? (field.value === undefined ? '' : visibleJson(field.value))}
        onChange={(event) => change(event.currentTarget.value)}
        onBlur={leave}
        error={errorText(problem ? [problem] : field.errors)}
        readOnly={field.isReadOnly}
      />
      <Warnings list={field.warnings} />
    </div>
  );
}
