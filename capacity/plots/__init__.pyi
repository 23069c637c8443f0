from .accuracy_grids import plot_accuracy_grid as plot_accuracy_grid
from .accuracy_grids import plot_accuracy_grids as plot_accuracy_grids
from .attention_patterns import plot_attention as plot_attention
from .files import require_drawable as require_drawable
from .files import save_figure as save_figure
from .theme import figure_theme as figure_theme
from .training_curves import plot_training as plot_training
