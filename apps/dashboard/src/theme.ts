import {
  type BadgeProps,
  createTheme,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
  type VariantColorsResolver,
} from '@mantine/core';

/** Parses ten shades, from lightest to darkest. */
const parseShades = (colors: string) => colors.split(' ') as unknown as MantineColorsTuple;

const dialogStyles = { title: { fontWeight: 600, fontSize: '1rem', lineHeight: 1.5 } };
const dialogProps = {
  overlayProps: { backgroundOpacity: 0.3 },
  removeScrollProps: { removeScrollBar: false },
  closeButtonProps: { 'aria-label': 'Close' },
};

/** Text on the accent has its own color in dark mode. */
const variantColorResolver: VariantColorsResolver = (input) => {
  const colors = defaultVariantColorsResolver(input);
  const isAccent = input.variant === 'filled' && (input.color === undefined || input.color === 'accent');
  return isAccent ? { ...colors, color: 'var(--th-on-accent)' } : colors;
};

/** Colors of badges that show an outcome. All others are neutral. */
const outcomeColors: unknown[] = ['green', 'yellow', 'red'];
const neutralBadge = {
  '--badge-bg': 'transparent',
  '--badge-color': 'var(--th-muted)',
  '--badge-bd': '1px solid var(--th-line)',
};
const badgeSize = { '--badge-height': '1.25rem', '--badge-fz': '0.75rem', '--badge-padding-x': '0.375rem' };
/** Boxes are quiet when checked. The accent is for the primary action. */
const boxProps = { color: 'var(--th-text)', iconColor: 'var(--th-page)' };

export const theme = createTheme({
  primaryColor: 'accent',
  primaryShade: { light: 7, dark: 4 },
  variantColorResolver,
  colors: {
    accent: parseShades('#eef5ff #dbe9ff #b4d1ff #8fbfff #6aa8ff #559cf8 #176fdc #0b5fce #0850af #083f88'),
    gray: parseShades('#f7f8fa #f1f3f6 #e4e7ec #e4e7ec #c6cdd6 #828d99 #6b7683 #56616d #343d47 #1a2027'),
    dark: parseShades('#e9edf2 #c4ccd6 #a3aeba #66717e #262c34 #1d232b #15191f #0e1115 #0b0e12 #07090c'),
  },
  black: '#1a2027',
  fontFamily: '"Geist", "Geist fallback", system-ui, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: '0.75rem', hint: '0.8125rem', sm: '0.875rem', md: '0.875rem', lg: '1rem', xl: '1.25rem' },
  lineHeights: { xs: '1.3334', hint: '1.5385', sm: '1.4286', md: '1.4286', lg: '1.5', xl: '1.4' },
  fontWeights: { medium: '500', bold: '600' },
  spacing: { xs: '0.5rem', sm: '0.75rem', md: '1rem', lg: '1.5rem', xl: '2rem' },
  radius: { xs: '0.25rem', sm: '0.375rem', md: '0.5rem', lg: '0.75rem', xl: '2rem' },
  defaultRadius: 'sm',
  cursorType: 'pointer',
  focusRing: 'auto',
  respectReducedMotion: true,
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '1.25rem', lineHeight: '1.4' },
      h2: { fontSize: '1rem', lineHeight: '1.5' },
      h3: { fontSize: '0.875rem', lineHeight: '1.4286', fontWeight: '500' },
    },
  },
  components: {
    Modal: {
      defaultProps: { ...dialogProps, centered: true, radius: 'lg', transitionProps: { duration: 0 } },
      styles: dialogStyles,
    },
    Drawer: { defaultProps: dialogProps, styles: dialogStyles },
    Tooltip: {
      defaultProps: {
        openDelay: 300,
        withArrow: true,
        events: { hover: true, focus: true, touch: false },
        // A tooltip whose text grows is repositioned only in the next frame. Until then it must not widen the page.
        floatingStrategy: 'fixed',
      },
    },
    ActionIcon: { defaultProps: { variant: 'subtle', color: 'gray' } },
    Notification: { defaultProps: { radius: 'md', closeButtonProps: { 'aria-label': 'Dismiss' } } },
    Menu: { defaultProps: { radius: 'md', shadow: 'md', transitionProps: { duration: 120 } } },
    InputWrapper: {
      defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'], withAsterisk: false },
    },
    TextInput: { defaultProps: { autoComplete: 'off' } },
    Select: { defaultProps: { checkIconPosition: 'right', allowDeselect: false } },
    SegmentedControl: { defaultProps: { size: 'xs' } },
    Checkbox: { defaultProps: boxProps },
    Radio: { defaultProps: boxProps },
    Switch: {
      defaultProps: { color: 'var(--th-text)', withThumbIndicator: false },
      vars: () => ({
        root: {
          '--switch-width': '1.75rem',
          '--switch-height': '1rem',
          '--switch-thumb-size': '0.75rem',
          '--switch-track-label-padding': '0.125rem',
        },
      }),
    },
    Tabs: { vars: () => ({ root: { '--tabs-text-color': 'var(--th-on-accent)' } }) },
    Alert: { defaultProps: { variant: 'light', radius: 'md' } },
    Badge: {
      defaultProps: { variant: 'light', radius: 'sm', tt: 'none', fw: 500 },
      vars: (_: unknown, { color }: BadgeProps) => ({
        root: { ...badgeSize, ...(!outcomeColors.includes(color) && neutralBadge) },
      }),
    },
  },
});
