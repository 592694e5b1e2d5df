import { Box, Drawer, Group, Title } from '@mantine/core';
import { IconCopyPlus, IconTrash } from '@tabler/icons-react';
import type { Ref } from 'react';
import { toVisible } from '../../../ui/text/visible.ts';
import { asText } from '../../config.ts';
import { IconButton, MoveButtons } from '../edit-buttons.tsx';
import { getFieldId, useEditor, useValue } from '../model/editor-context.ts';
import { ToolForm } from './tool-form.tsx';

type Props = {
  /** Index of the tool; undefined while none is open. */
  index: number | undefined;
  count: number;
  /** Receives the container for the save bar. */
  saveBarRef: Ref<HTMLDivElement>;
  move: (from: number, to: number) => void;
  duplicate: (index: number) => void;
  remove: (index: number) => void;
  close: () => void;
};

export function getToolName(name: unknown, index: number): string {
  return toVisible(asText(name)) || `Tool ${index + 1}`;
}

/** The tool being edited: in a drawer for a stored server, inline for a new one. */
export function OpenTool({ index, count, saveBarRef, close, ...actions }: Props) {
  const { isNew } = useEditor();
  const isOpen = index !== undefined && index < count;
  if (isNew) {
    return (
      isOpen && (
        <Box component="section" className="th-card" aria-label="Tool" p="md" key={index}>
          <Group gap="xs" mb="sm" justify="space-between">
            <Heading index={index} />
            <ToolActions index={index} count={count} {...actions} />
          </Group>
          <ToolForm index={index} />
        </Box>
      )
    );
  }
  return (
    <Drawer.Root opened={isOpen} onClose={close} position="right" size={690} transitionProps={{ duration: 0 }}>
      <Drawer.Overlay backgroundOpacity={0.3} />
      <Drawer.Content className="th-tool-drawer">
        {isOpen && (
          <>
            <Drawer.Header>
              <Drawer.Title flex="1 1 8rem" miw={0}>
                <Heading index={index} />
              </Drawer.Title>
              <Group gap={0} wrap="nowrap">
                <ToolActions index={index} count={count} {...actions} />
                <Drawer.CloseButton aria-label="Close" />
              </Group>
            </Drawer.Header>
            <Drawer.Body key={index}>
              <ToolForm index={index} />
              <div ref={saveBarRef} className="th-drawer-bar" />
            </Drawer.Body>
          </>
        )}
      </Drawer.Content>
    </Drawer.Root>
  );
}

function Heading({ index }: { index: number }) {
  const { isNew } = useEditor();
  const name = getToolName(useValue(['tools', index, 'name']), index);
  return (
    <Title
      order={isNew ? 3 : 2}
      component={isNew ? 'h3' : 'div'}
      ff="monospace"
      id={getFieldId(`tools[${index}]`)}
      tabIndex={-1}
      data-autofocus
    >
      {name}
    </Title>
  );
}

type ToolActionsProps = Omit<Props, 'index' | 'saveBarRef' | 'close'> & { index: number };

function ToolActions({ index, count, move, duplicate, remove }: ToolActionsProps) {
  const name = getToolName(useValue(['tools', index, 'name']), index);
  return (
    <Group gap={0} wrap="nowrap" className="th-tool-changes">
      <MoveButtons label={name} index={index} count={count} move={move} />
      <IconButton label={`Duplicate ${name}`} icon={IconCopyPlus} onClick={() => duplicate(index)} />
      <IconButton label={`Delete ${name}`} icon={IconTrash} onClick={() => remove(index)} />
    </Group>
  );
}
