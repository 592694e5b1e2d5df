import { Button, Stack, Text } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { type ReactNode, type Ref, useEffect, useRef, useState } from 'react';
import { useLocation, useNavigate, useSearchParams } from 'react-router';
import type { JsonObject } from '../../../answers.ts';
import { Section } from '../../../ui/section.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { listOf, newTool, textOf, toolsOf, valueAt } from '../../config.ts';
import { ChoiceField, NumberField } from '../config-fields.tsx';
import { Errors, Warnings } from '../field-messages.tsx';
import { useEdited, useEditor, useMessages } from '../model/editor-context.ts';
import { goToField } from '../model/go-to-field.ts';
import { OpenTool } from './open-tool.tsx';
import { ToolTable } from './tool-table.tsx';

const modes = [
  { value: 'list', label: 'All of them in a list' },
  { value: 'search', label: 'By search: they find, read and call tools, and see those that are pinned' },
];

/** The tools in the order in which agents see them, and the one that is open. */
export function ToolsSection({ bar }: { bar: Ref<HTMLDivElement> }) {
  const { isReadOnly } = useEditor();
  const { count, open, close, move, add, duplicate, remove } = useToolList();
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
      <ToolsFields>
        {count === 0 ? (
          <Text size="sm" c="dimmed">
            No tools yet.
          </Text>
        ) : (
          <ToolTable count={count} open={open} onMove={move} />
        )}
        <OpenTool
          index={open}
          count={count}
          bar={bar}
          onMove={move}
          onDuplicate={duplicate}
          onRemove={remove}
          onClose={close}
        />
      </ToolsFields>
    </Section>
  );
}

/** The settings of all tools, and what is wrong with the list. */
function ToolsFields({ children }: { children: ReactNode }) {
  const { id, errors, warnings } = useMessages(['tools']);
  return (
    <Stack gap="xs" id={id} tabIndex={-1}>
      {children}
      <TwoColumns>
        <ChoiceField
          path={['tool_mode']}
          label="How agents get the tools"
          text="A search costs a conversation some hundred tokens, however many tools there are."
          choices={modes}
          placeholder="All of them in a list"
        />
        <NumberField
          path={['max_answer_tokens']}
          label="Most tokens of an answer"
          text="A longer answer is cut between items or lines, and agents read the rest with read_more."
          placeholder="No limit"
        />
      </TwoColumns>
      <Errors list={errors} />
      <Warnings list={warnings} />
    </Stack>
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
  const isLeft = useRef(false);
  useEffect(() => {
    isLeft.current = open === undefined;
  }, [open]);
  const setOpen = (index: number) => {
    show(index);
    const name = nameAt(index);
    if (isNew || name === named) return;
    const address = `${pathname}?${new URLSearchParams({ tool: name })}`;
    const isReplaced = named !== null;
    const next = isReplaced ? state : { isOpened: true };
    void navigate(address, { replace: isReplaced, state: next, preventScrollReset: true });
  };
  const close = () => {
    isLeft.current = true;
    show(undefined);
    if ((state as { isOpened?: true } | null)?.isOpened) void navigate(-1);
    else if (named !== null) void navigate(pathname, { replace: true, preventScrollReset: true });
  };
  useWindowEvent('toolhost:open-tool', ({ detail }) => setOpen(detail));
  // A renamed tool has its new name in the address before Save is pressed, which draws the editor anew. A field also loses
  // the focus when its tool is closed.
  useWindowEvent('focusout', () => {
    const isStill = !isLeft.current && new URLSearchParams(window.location.search).has('tool');
    if (isStill && named !== null && open !== undefined) setOpen(open);
  });
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
