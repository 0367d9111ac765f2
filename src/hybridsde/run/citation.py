"""What to cite: BibTeX of the methods that a run used."""

from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.declaration import LIBRARY, PROCESS
from hybridsde.model.bayesian import SampledNetworks
from hybridsde.run.run import Run

ENTRIES = {
    "haussmann2021": """@inproceedings{haussmann2021,
  title     = {Learning Partially Known Stochastic Dynamics with Empirical {PAC} {Bayes}},
  author    = {Haussmann, Manuel and Gerwinn, Sebastian and Look, Andreas and Rakitsch, Barbara
               and Kandemir, Melih},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  year      = {2021},
}""",
    "sarkka2019": """@book{sarkka2019,
  title     = {Applied Stochastic Differential Equations},
  author    = {Särkkä, Simo and Solin, Arno},
  publisher = {Cambridge University Press},
  year      = {2019},
}""",
    "gneiting2007": """@article{gneiting2007,
  title   = {Strictly Proper Scoring Rules, Prediction, and Estimation},
  author  = {Gneiting, Tilmann and Raftery, Adrian E.},
  journal = {Journal of the American Statistical Association},
  volume  = {102},
  number  = {477},
  pages   = {359--378},
  year    = {2007},
}""",
    "mackay1992": """@article{mackay1992,
  title   = {Bayesian Interpolation},
  author  = {MacKay, David J. C.},
  journal = {Neural Computation},
  volume  = {4},
  number  = {3},
  pages   = {415--447},
  year    = {1992},
}""",
    "george1997": """@article{george1997,
  title   = {Approaches for {Bayesian} Variable Selection},
  author  = {George, Edward I. and McCulloch, Robert E.},
  journal = {Statistica Sinica},
  volume  = {7},
  pages   = {339--373},
  year    = {1997},
}""",
    "rasmussen2006": """@book{rasmussen2006,
  title     = {Gaussian Processes for Machine Learning},
  author    = {Rasmussen, Carl Edward and Williams, Christopher K. I.},
  publisher = {MIT Press},
  year      = {2006},
}""",
    "welling2011": """@inproceedings{welling2011,
  title     = {{Bayesian} Learning via Stochastic Gradient {Langevin} Dynamics},
  author    = {Welling, Max and Teh, Yee Whye},
  booktitle = {International Conference on Machine Learning},
  year      = {2011},
}""",
    "chen2018": """@inproceedings{chen2018,
  title     = {Neural Ordinary Differential Equations},
  author    = {Chen, Ricky T. Q. and Rubanova, Yulia and Bettencourt, Jesse and Duvenaud, David},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2018},
}""",
    "heinonen2018": """@inproceedings{heinonen2018,
  title     = {Learning Unknown {ODE} Models with {Gaussian} Processes},
  author    = {Heinonen, Markus and Yıldız, Çağatay and Mannerström, Henrik and
               Intosalmi, Jukka and Lähdesmäki, Harri},
  booktitle = {International Conference on Machine Learning},
  year      = {2018},
}""",
    "yildiz2019": """@inproceedings{yildiz2019,
  title     = {{ODE2VAE}: Deep Generative Second Order {ODE}s with {Bayesian} Neural Networks},
  author    = {Yıldız, Çağatay and Heinonen, Markus and Lähdesmäki, Harri},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2019},
}""",
    "gan2015": """@inproceedings{gan2015,
  title     = {Deep Temporal Sigmoid Belief Networks for Sequence Modeling},
  author    = {Gan, Zhe and Li, Chunyuan and Henao, Ricardo and Carlson, David and Carin, Lawrence},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2015},
}""",
}
OTHERS = {
    "NeuralODE": "chen2018",
    "NpODE": "heinonen2018",
    "ODE2VAE": "yildiz2019",
    "DTSBN": "gan2015",
}
"""Papers of other systems, by the name of their class."""


def cite(run: Run) -> str:
    """BibTeX of the paper, and of what else a run stands on, one entry after the other."""
    return "\n\n".join(ENTRIES[key] for key in keys_of(run))


def keys_of(run: Run) -> list[str]:
    """The entries that a run needs."""
    spec = run.spec
    found = ["haussmann2021", "gneiting2007"]
    if not isinstance(spec, HybridSDE):
        other = OTHERS.get(type(spec).__name__)
        return [other, *found] if other else found
    if spec.latent is None:
        found.append("sarkka2019")
    if LIBRARY in spec.pieces:
        found += ["mackay1992", "george1997"]
    if PROCESS in spec.pieces:
        found.append("rasmussen2006")
    network = getattr(getattr(run.forecaster, "model", None), "network", None)
    if isinstance(network, SampledNetworks):
        found.append("welling2011")
    return found
