import { Button, Stack, Text } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { type Ref, useEffect, useEffectEvent, useRef, useState } from 'react';
import { useLocation, useNavigate, useSearchParams } from 'react-router';
import type { JsonObject } from '../../../answers.ts';
import { Section } from '../../../ui/section.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { listOf, newTool, textOf, toolsOf, valueAt } from '../../config.ts';
import { Errors, Warnings } from '../field-messages.tsx';
import { declared, Fields } from '../fields.tsx';
import { fieldId, useEdited, useEditor, useMessages } from '../model/editor-context.ts';
import { goToField } from '../model/go-to-field.ts';
import { OpenTool } from './open-tool.tsx';
import { ToolTable } from './tool-table.tsx';

const modes = [
  { value: 'list', label: 'All of them in a list' },
  { value: 'search', label: 'By search: they find, read and call tools, and see those that are pinned' },
];

const searches = 'A search costs a conversation some hundred tokens, however many tools there are.';
const cuts = 'A longer answer is cut between items or lines, and agents read the rest with read_more.';
const ofAll = [
  declared.choice('tool_mode', 'How agents get the tools', searches, modes, { placeholder: 'All of them in a list' }),
  declared.number('max_answer_tokens', 'Most tokens of an answer', cuts, { placeholder: 'No limit' }),
];

/** The tools in the order in which agents see them, and the one that is open. */
export function ToolsSection({ bar }: { bar: Ref<HTMLDivElement> }) {
  const { isReadOnly } = useEditor();
  const { count, open, add, ...changes } = useToolList();
  return (
    <Section
      title="Tools"
      text="A tool is one HTTP request. Agents choose a tool by its name and description."
      actions={
        !isReadOnly && (
          <Button variant="default" size="xs" leftSection={<IconPlus size={14} />} onClick={add}>
            Add a tool
          </Button>
        )
      }
    >
      <Stack gap="xs" id={fieldId('tools')} tabIndex={-1}>
        {count === 0 ? (
          <Text size="sm" c="dimmed">
            No tools yet.
          </Text>
        ) : (
          <ToolTable count={count} open={open} onMove={changes.move} />
        )}
        <OpenTool index={open} count={count} bar={bar} {...changes} />
        <TwoColumns>
          <Fields path={[]} of={ofAll} />
        </TwoColumns>
        <Messages />
      </Stack>
    </Section>
  );
}

/** What is wrong with the list. It may be another sentence after each letter, so nothing else is drawn again for it. */
function Messages() {
  const { errors, warnings } = useMessages(['tools']);
  return (
    <>
      <Errors list={errors} />
      <Warnings list={warnings} />
    </>
  );
}

/**
 * The index of the tool that is open. The address of a stored server names it: a link opens it, and going back closes it.
 */
function useOpenTool() {
  const { store, isNew } = useEditor();
  const navigate = useNavigate();
  const { pathname, state } = useLocation();
  const [search] = useSearchParams();
  const named = search.get('tool');
  const nameAt = (index: number) => textOf(valueAt(store.now().config, ['tools', index, 'name']));
  const indexOf = (name: string | null) => {
    const index = toolsOf(store.now().config).findIndex((tool) => textOf(tool.name) === name);
    return index < 0 ? undefined : index;
  };
  const [open, show] = useState(() => (isNew ? 0 : indexOf(named)));
  const [seen, see] = useState(named);
  if (seen !== named) {
    see(named);
    // A tool that is open and has this name stays, although another one may have it too.
    if (named === null || open === undefined || nameAt(open) !== named) show(indexOf(named));
  }
  // Whether the address of the open tool is an entry of its own, above that of the list.
  const isAbove = useRef((state as { isAbove?: boolean } | null)?.isAbove === true);
  const setOpen = (index: number) => {
    show(index);
    const name = nameAt(index);
    if (isNew || name === named) return;
    const replace = open !== undefined || named !== null;
    isAbove.current ||= !replace;
    const address = `${pathname}?${new URLSearchParams({ tool: name })}`;
    void navigate(address, { replace, state: { isAbove: isAbove.current }, preventScrollReset: true });
  };
  const close = () => {
    show(undefined);
    if (isAbove.current) void navigate(-1);
    else if (named !== null) void navigate(pathname, { replace: true, preventScrollReset: true });
    isAbove.current = false;
  };
  useWindowEvent('toolhost:open-tool', ({ detail }) => setOpen(detail));
  // A tool that was renamed has its new name in the address once it is stored.
  const stored = useEdited(({ initial }) => initial);
  const rename = useEffectEvent(() => {
    if (named !== null && open !== undefined) setOpen(open);
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `stored` says when
  useEffect(() => rename(), [stored]);
  return { open, show, close };
}

/** What is done with the list of tools, and the one that is open. */
function useToolList() {
  const { store } = useEditor();
  const { open, show, close } = useOpenTool();
  const count = useEdited(({ config }) => listOf(config.tools).length);
  const now = () => toolsOf(store.now().config);
  const put = (next: unknown[]) => store.set(['tools'], next);
  return {
    count,
    open,
    close,
    move: (from: number, to: number) => {
      const tools = now();
      const tool = tools[from];
      if (tool === undefined || to < 0 || to >= tools.length || from === to) return;
      put(tools.toSpliced(from, 1).toSpliced(to, 0, tool));
      show((index) => (index === undefined ? undefined : movedIndex(index, from, to)));
    },
    add: () => {
      put([...now(), newTool]);
      goToField(`tools[${count}].name`);
    },
    duplicate: (index: number) => {
      const tools = now();
      put(tools.toSpliced(index + 1, 0, { ...tools[index], name: copyName(tools, index) }));
      goToField(`tools[${index + 1}].name`);
    },
    remove: (index: number) => {
      put(now().toSpliced(index, 1));
      close();
    },
  };
}

/** Where a tool is after the one at `from` has moved to `to`. */
function movedIndex(index: number, from: number, to: number): number {
  if (index === from) return to;
  if (from < index && index <= to) return index - 1;
  return to <= index && index < from ? index + 1 : index;
}

/** `list_tasks` → `list_tasks_2`, or the next number that is free. */
function copyName(tools: readonly JsonObject[], index: number): string {
  const names = new Set(tools.map((tool) => textOf(tool.name)));
  const base = textOf(tools[index]?.name).replace(/_\d+$/, '');
  for (let number = 2; ; number++) {
    const name = `${base}_${number}`;
    if (!names.has(name)) return name;
  }
}
